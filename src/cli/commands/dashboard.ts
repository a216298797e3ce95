import type { Command } from 'commander'
import { GatewayError } from '../../errors.js'
import { openBrowser } from '../../processes/open-browser.js'
import type { CommandContext } from '../command-context.js'
import { ControlClient } from '../control/client.js'
import { socketPath } from '../control/protocol.js'
import { ownName } from '../own-name.js'

export function registerDashboard(program: Command, context: CommandContext): void {
  program
    .command('dashboard')
    .description('Print a link to the dashboard that logs your browser in, once.')
    .option('--open', 'open it in the browser, too')
    .action(async ({ open = false }: { open?: boolean }) => {
      const { environment } = context
      const { home } = context.readConfig()
      const control = await ControlClient.connect(socketPath(home))
      if (!control) {
        const advice = `Start it with "${ownName(context.configLocation())} start", and ask again in another terminal.`
        throw new GatewayError('gateway_unavailable', `No gateway is running. ${advice}`)
      }
      try {
        const { url, expiresAt } = await control.call('dashboard.link', {})
        console.log(url)
        console.error(`It works once, within ${Math.round((expiresAt - Date.now()) / 60_000)} minutes.`)
        if (open && !openBrowser(url, environment))
          console.error('No browser can be opened here: open the link yourself.')
      } finally {
        await control.close()
      }
    })
}
