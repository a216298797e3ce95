import { describeEngines } from '../kit/engines.js'
import { describeStoreContract } from './store-contract.js'

describeEngines('the store', describeStoreContract)
