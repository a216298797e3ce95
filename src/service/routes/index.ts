import type { App, ServiceDependencies } from '../dependencies.js'
import { registerActivityRoutes } from './activity.js'
import { registerAgentRoutes } from './agents.js'
import { registerApprovalRoutes } from './approvals.js'
import { registerAuditRoutes } from './audit.js'
import { registerCommandRoutes } from './commands.js'
import { registerConversationActionRoutes } from './conversation-actions.js'
import { registerConversationCommandRoutes } from './conversation-commands.js'
import { registerConversationChangeRoutes } from './conversation-changes.js'
import { registerConversationFileRoutes } from './conversation-files.js'
import { registerConversationSessionRoutes } from './conversation-sessions.js'
import { registerConversationRoutes } from './conversations.js'
import { registerCredentialRoutes } from './credentials.js'
import { registerExecuteRoutes } from './execute.js'
import { registerFigureRoutes } from './figures.js'
import { registerHealthRoutes } from './health.js'
import { registerProjectRoutes } from './projects.js'
import { registerQueueRoutes } from './queue.js'
import { registerTemplateRoutes } from './templates.js'
import { registerTokenRoutes } from './tokens.js'

export function registerRoutes(app: App, dependencies: ServiceDependencies): void {
  registerProjectRoutes(app, dependencies)
  registerTemplateRoutes(app, dependencies)
  registerExecuteRoutes(app, dependencies)
  registerCommandRoutes(app, dependencies)
  registerConversationRoutes(app, dependencies)
  registerConversationActionRoutes(app, dependencies)
  registerConversationSessionRoutes(app, dependencies)
  registerConversationChangeRoutes(app, dependencies)
  registerConversationCommandRoutes(app, dependencies)
  registerConversationFileRoutes(app, dependencies)
  registerActivityRoutes(app, dependencies)
  registerAgentRoutes(app, dependencies)
  registerCredentialRoutes(app, dependencies)
  registerQueueRoutes(app, dependencies)
  registerApprovalRoutes(app, dependencies)
  registerTokenRoutes(app, dependencies)
  registerAuditRoutes(app, dependencies)
  registerFigureRoutes(app, dependencies)
  registerHealthRoutes(app, dependencies)
}
