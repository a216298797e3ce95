import { describeEngines } from '../engines.js'
import { describeStoreContract } from './store-contract.js'

describeEngines('the store', describeStoreContract)
