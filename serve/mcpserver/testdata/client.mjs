// The whole path of a client: list, load, read, run with arguments, a file in and out, a
// refusal that the next call puts right, a cancellation, a timeout of the script and one of
// the client's own. It is told an address, or the command line of a server on its streams.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'path', version: '1' })
const [target, ...args] = process.argv.slice(2)
await client.connect(target.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: 'Bearer acme' } } })
  : new StdioClientTransport({ command: target, args, env: process.env }))

const { tools } = await client.listTools()
assert.deepEqual(tools.map(t => t.name).sort(), ['list_skills', 'load_skill', 'read_skill_resource', 'run_skill_script'])

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options)
const listed = await call('list_skills', {})
assert.deepEqual(listed.structuredContent.skills.map(s => s.name), ['shout', 'tales'])
const loaded = await call('load_skill', { skill: 'shout' })
assert.match(loaded.content[0].text, /Run scripts\/shout\.sh/)
const read = await call('read_skill_resource', { skill: 'tales', path: 'SKILL.md' })
assert.match(read.structuredContent.text, /Once upon a time/)

const refused = await call('run_skill_script', { skill: 'shout', script: 'shout.sh' })
assert.equal(refused.isError, true)
assert.ok(refused.structuredContent.names.includes('scripts/shout.sh'))

const ran = await call('run_skill_script', {
  skill: 'shout', script: 'scripts/shout.sh', arguments: ['hi'], inputs: [{ name: 'in.txt', text: 'hello' }]
})
assert.equal(ran.structuredContent.exitCode, 0)
assert.equal(ran.structuredContent.stdout.text, 'words: hi\n')
assert.equal(ran.content[1].resource.text, 'HELLO')
const again = await call('run_skill_script', {
  skill: 'shout', script: 'scripts/shout.sh', inputs: [{ name: 'in.txt', handle: ran.structuredContent.outputs[0].handle }]
})
assert.equal(again.content[1].resource.text, 'HELLO')

const late = await call('run_skill_script', { skill: 'shout', script: 'scripts/late.sh' })
assert.equal(late.isError, true)
assert.equal(late.structuredContent.timedOut, true)
assert.equal(late.structuredContent.exitCode, null)

// A cancellation reaches the run: the next call has its slot.
const stop = new AbortController()
let seen
const heard = new Promise(resolve => { seen = resolve })
const slow = call('run_skill_script', { skill: 'shout', script: 'scripts/slow.sh' }, { signal: stop.signal, onprogress: seen })
assert.match((await heard).message, /begun/)
stop.abort('enough')
await assert.rejects(slow)
await assert.rejects(call('run_skill_script', { skill: 'shout', script: 'scripts/slow.sh' }, { timeout: 300 }))
await client.ping()
await client.close()
