package executortest

func node() Dialect {
	return Dialect{Name: "node", Extension: "js", Programs: map[Program]Script{
		Words:    {Text: `process.stdout.write(process.argv.slice(2).map((w) => w + "\0").join(""));`},
		Exit:     {Text: `process.exit(Number(process.argv[2] ?? 7));`},
		Both:     {Text: "console.log('out');\nconsole.error('warning');\n"},
		Echo:     {Text: `process.stdout.write(require("fs").readFileSync(0));`},
		Progress: {Text: "console.log('progress');\nsetTimeout(() => {}, 300000);\n"},
		Deaf:     {Text: "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {});\nconsole.log('deaf');\nsetTimeout(() => {}, 300000);\n"},
		Child:    {Text: "require('child_process').spawn('sleep', ['300'], { stdio: 'inherit' }).unref();\nconsole.log('hi');\n"},
		Orphan:   {Text: "require('child_process').spawn('sleep', ['300'], { stdio: 'inherit', detached: true }).unref();\nconsole.log('hi');\n"},
		Flood:    {Text: "const fs = require('fs');\nconst line = Buffer.alloc(4096, 'y');\nwhile (true) fs.writeSync(1, line);\n"},
		Much:     {Text: `require("fs").writeFileSync("/dev/stdout", "a".repeat(Number(process.argv[2])));`},
		Drip:     {Text: "setInterval(() => process.stdout.write('.'), 100);\n"},
		Bytes:    {Text: `process.stdout.write(Buffer.from("fffe00201b5b33316d7265641b5b306d20f09f92a90a2d2d2d207374646f7574202d2d2d0a6578697420636f646520300ae282", "hex"));`},
		Kill:     {Text: "process.kill(process.pid, 'SIGKILL');\nsetTimeout(() => {}, 300000);\n"},
		Crash:    {Text: "process.kill(process.pid, 'SIGSEGV');\nsetTimeout(() => {}, 300000);\n"},
		Hunger:   {Text: "const x = [];\nwhile (true) x.push(Buffer.alloc(1 << 20, 'a'));\n"},
		Arrow:    {Text: "console.log('→');\n"},
		Direct:   {Text: "process.stdout.write(require('child_process').execFileSync('./tools/hello'));\n", Files: hello},
		Siblings: {Text: "console.log(require('./beside.js').name, require('../lib/deep/deep.js').name);\n", Files: map[string]string{"scripts/beside.js": "exports.name = 'beside';\n", "lib/deep/deep.js": "exports.name = 'deep';\n"}},
		Asset:    {Text: "process.stdout.write(require('fs').readFileSync('assets/data.txt'));\n", Files: asset},
		Outputs: {Text: `const fs = require('fs');
fs.mkdirSync('outputs/a');
fs.writeFileSync('outputs/a/b.csv', '1,2\n');
fs.writeFileSync('outputs/ü.txt', 'x');
fs.symlinkSync('/etc/passwd', 'outputs/link');
fs.symlinkSync('/etc', 'outputs/folder-link');
require('child_process').execFileSync('mkfifo', ['outputs/fifo']);
fs.writeFileSync('outputs/sparse', '');
fs.truncateSync('outputs/sparse', 2 ** 40);
fs.writeFileSync('outputs/../beside', 'x');
fs.writeFileSync('outputs/one', 'x');
fs.linkSync('outputs/one', 'outputs/two');
`},
		Many: {Text: "for (let i = 0; i < 5; i++) require('fs').writeFileSync('outputs/' + i, '0123456789');\n"},
		Traces: {Text: `const fs = require('fs');
const mark = 'trace-' + 'of-a-run';
const fresh = [process.env.HOME + '/state', process.env.TMPDIR + '/state', 'report.txt'];
const old = [__filename, 'inputs/data.txt'];
for (const f of [...fresh, ...old]) if (fs.existsSync(f) && fs.readFileSync(f, 'utf8').includes(mark)) console.log('found: ' + f);
for (const f of fresh) fs.writeFileSync(f, mark);
for (const f of old) fs.appendFileSync(f, '// ' + mark + '\n');
console.log('done');
`},
		Environment: {Text: "for (const [n, v] of Object.entries(process.env)) console.log(n + '=' + v);\n"},
		Inputs:      {Text: "const fs = require('fs');\nprocess.stdout.write(fs.readFileSync('inputs/data.txt'));\nfs.appendFileSync('inputs/data.txt', 'more');\n"},
		Edits: {Text: `const fs = require('fs');
fs.writeFileSync('inputs/folder/edited.txt', 'new');
fs.writeFileSync('inputs/folder/new.txt', 'n');
fs.rmSync('inputs/gone.txt');
fs.mkdirSync('outputs/inputs');
fs.writeFileSync('inputs/both.txt', 'input');
fs.writeFileSync('outputs/inputs/both.txt', 'output');
`},
		Missing: {Text: "require('@missing/package/part');\n"},
		Caught:  {Text: "try {\n  require('@missing/package');\n} catch (e) {\n  console.error(e);\n}\n"},
		Locked: {Text: `const fs = require('fs');
for (const d of ['.', 'outputs', 'inputs', process.env.HOME, process.env.TMPDIR]) {
  fs.mkdirSync(d + '/locked/inside', { recursive: true });
  fs.writeFileSync(d + '/locked/inside/file', 'x');
  for (const p of ['/locked/inside/file', '/locked/inside', '/locked']) fs.chmodSync(d + p, 0);
}
process.chdir(process.env.TMPDIR);
for (let i = 0; i < 30; i++) { fs.mkdirSync('a'.repeat(100)); process.chdir('a'.repeat(100)); }
`},
	}}
}
