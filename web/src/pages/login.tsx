import { useState } from 'preact/hooks'
import type { Me } from '../../../src/client/aetheel-client.js'
import { api } from '../api.js'
import { Logo } from '../frame/logo.js'
import { ErrorNote } from '../parts/error-note.js'
import { useAction } from '../use-action.js'

export function LoginPage({ note, onLogin }: { note?: string | undefined; onLogin: (me: Me) => void }) {
  const [token, setToken] = useState('')
  const { run, isBusy, error } = useAction()
  return (
    <main class="alone">
      <form
        class="card login"
        onSubmit={(event) => {
          event.preventDefault()
          void run(async () => onLogin(await api.login(token.trim())))
        }}
      >
        <h1 class="brand">
          <Logo />
          Aetheel
        </h1>
        {note !== undefined && <ErrorNote words={note} />}
        <p>
          Run <code>aetheel dashboard</code> on the gateway's machine. It prints a link that logs you in.
        </p>
        <p>
          Or use a token. The first is in <code>~/.aetheel/http-token</code>; <code>aetheel tokens create</code> creates
          more.
        </p>
        <label>
          Token
          <input
            type="password"
            name="token"
            autoComplete="current-password"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {error !== undefined && <ErrorNote words={error} />}
        <button type="submit" class="primary" disabled={isBusy}>
          Log in
        </button>
      </form>
    </main>
  )
}
