import type { Command } from 'commander'
import { openBrowser } from '../../processes/open-browser.js'
import type { CommandContext } from '../command-context.js'
import { withGateway } from '../with-control.js'

export function registerDashboard(program: Command, context: CommandContext): void {
  program
    .command('dashboard')
    .description('Print a link that logs your browser in to the dashboard. It works once.')
    .option('--open', 'also open it in the browser')
    .action(async ({ open = false }: { open?: boolean }) => {
      const { environment } = context
      const { home } = context.readConfig()
      const { url, expiresAt } = await withGateway(home, (control) => control.call('dashboard.link', {}))
      console.log(url)
      console.error(`The link works once and expires in ${Math.round((expiresAt - Date.now()) / 60_000)} minutes.`)
      if (open && !openBrowser(url, environment)) console.error('Cannot open a browser here. Open the link yourself.')
    })
}
