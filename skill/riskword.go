package skill

import (
	"path"
	"strings"
)

// A lexicon knows which words of a language are signs of risk.
type lexicon struct {
	comment string // a line that begins with it says nothing
	shell   bool

	words    map[string]string // name, or its beginning up to a dot => code
	calls    map[string]string // a whole name before "("
	methods  map[string]string // the last part of a name before "("
	imports  map[string]string // a name in a line that imports
	isImport func(line string) bool
}

// lexicons are by the entry of an allow-list that a script falls under.
var lexicons = func() map[string]*lexicon {
	m := map[string]*lexicon{"py": &python}
	for _, ext := range []string{"js", "mjs", "cjs", "ts"} {
		m[ext] = &javascript
	}
	for _, ext := range []string{"sh", "bash", "zsh"} {
		m[ext] = &shell
	}
	return m
}()

// codes makes a map of words, in lists by code.
func codes(by map[string]string) map[string]string {
	m := map[string]string{}
	for code, list := range by {
		for word := range strings.FieldsSeq(list) {
			m[word] = code
		}
	}
	return m
}

var python = lexicon{
	comment: "#",
	words: codes(map[string]string{
		riskNetwork: "asyncio.open_connection asyncio.start_server asyncio.open_unix_connection",
		riskSubprocess: `subprocess pexpect pty.spawn os.system os.popen os.fork os.forkpty os.posix_spawn os.posix_spawnp os.startfile
			os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe
			os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe
			asyncio.create_subprocess_exec asyncio.create_subprocess_shell`,
		riskEval: `importlib.import_module importlib.util.spec_from_file_location importlib.machinery builtins.exec builtins.eval builtins.compile
			pickle.load pickle.loads pickle.Unpickler marshal.load marshal.loads dill.load dill.loads ctypes cffi runpy code.interact types.CodeType types.FunctionType`,
		riskEnvironment: "os.environ os.environb os.getenv os.getenvb",
	}),
	calls: codes(map[string]string{
		riskEval:        "eval exec compile __import__",
		riskEnvironment: "getenv load_dotenv",
	}),
	imports: codes(map[string]string{
		riskNetwork: `requests urllib urllib2 urllib3 http.client http.server httplib httplib2 socket socketserver ssl httpx aiohttp ftplib smtplib imaplib poplib
			nntplib telnetlib xmlrpc websocket websockets paramiko asyncssh pycurl grpc boto3 botocore tornado flask fastapi uvicorn scapy dns selenium playwright
			pyppeteer openai anthropic`,
		riskEnvironment: "environ dotenv",
	}),
	isImport: func(line string) bool { return strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "from ") },
}

var javascript = lexicon{
	comment: "//",
	words: codes(map[string]string{
		riskNetwork:     "XMLHttpRequest WebSocket EventSource navigator.sendBeacon http.request http.get https.request https.get net.connect net.createConnection Deno.connect",
		riskSubprocess:  "child_process Deno.run Deno.Command Bun.spawn Bun.spawnSync",
		riskEval:        "vm.runInThisContext vm.runInNewContext vm.runInContext vm.Script vm.compileFunction WebAssembly",
		riskEnvironment: "process.env Deno.env Bun.env import.meta.env",
	}),
	calls: codes(map[string]string{
		riskNetwork: "fetch axios",
		riskEval:    "eval Function",
	}),
	methods: codes(map[string]string{
		riskSubprocess: "execSync execFile execFileSync spawn spawnSync fork",
	}),
	imports: codes(map[string]string{
		riskNetwork:     "http https http2 net tls dgram dns axios undici got ws superagent puppeteer playwright express fetch",
		riskSubprocess:  "execa shelljs zx cluster",
		riskEval:        "vm",
		riskEnvironment: "dotenv",
	}),
	isImport: func(line string) bool {
		return strings.HasPrefix(line, "import ") || strings.Contains(line, "require(") || strings.Contains(line, "import(") || strings.Contains(line, " from ")
	},
}

var shell = lexicon{
	comment: "#", shell: true,
	words: codes(map[string]string{
		riskNetwork:     "curl wget nc ncat netcat socat ssh scp sftp rsync ftp telnet aria2c dig nslookup ping pip pip3 npm npx pnpm yarn apt-get apk yum dnf brew gem git",
		riskSubprocess:  "sudo su doas nohup setsid xargs python python3 node perl ruby php bash sh zsh",
		riskEval:        "eval source",
		riskEnvironment: "printenv env",
		riskEncoded:     "base64 xxd uudecode",
	}),
}

// look calls found for each sign in a line.
func (l *lexicon) look(line string, found func(code, word string)) {
	line = strings.TrimLeft(line, " \t")
	if line == "" || strings.HasPrefix(line, l.comment) {
		return
	}
	if l.shell {
		l.lookShell(line, found)
		return
	}
	imports := l.isImport(line)
	for i := 0; i < len(line); {
		if !nameByte(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && (nameByte(line[i]) || line[i] == '.') {
			i++
		}
		name := strings.TrimRight(line[start:i], ".")
		if len(name) > 200 {
			continue
		}
		call := strings.HasPrefix(strings.TrimLeft(line[i:min(len(line), i+4)], " "), "(")
		if code, word := l.name(name, call, imports); code != "" {
			found(code, word)
		}
	}
}

// name returns the code of a name with dots, and the part of it that is the sign.
func (l *lexicon) name(name string, call, imports bool) (code, word string) {
	if call {
		if code, ok := l.calls[name]; ok {
			return code, name
		}
		last := name[strings.LastIndexByte(name, '.')+1:]
		if code, ok := l.methods[last]; ok {
			return code, last
		}
	}
	for end := 0; end < len(name); end++ {
		if end+1 < len(name) && name[end+1] != '.' {
			continue
		}
		part := name[:end+1]
		if code, ok := l.words[part]; ok {
			return code, part
		}
		if code, ok := l.imports[part]; ok && imports {
			return code, part
		}
	}
	return "", ""
}

// lookShell looks at the words where a command may stand, at /dev/tcp, and at
// variables that are named as secrets are.
func (l *lexicon) lookShell(line string, found func(code, word string)) {
	command := true
	for i := 0; i < len(line); {
		c := line[i]
		if !nameByte(c) && strings.IndexByte("./-", c) < 0 {
			if strings.IndexByte("|;&(`{!", c) >= 0 {
				command = true
			}
			if c == '#' && i > 0 && line[i-1] == ' ' {
				return // the rest is a comment
			}
			i++
			continue
		}
		start := i
		for i < len(line) && (nameByte(line[i]) || strings.IndexByte("./-", line[i]) >= 0) {
			i++
		}
		word := line[start:i]
		before := byte(' ')
		if start > 0 {
			before = line[start-1]
		}
		switch {
		case before == '$' || before == '{' && start > 1 && line[start-2] == '$':
			if secretName(word) {
				found(riskEnvironment, "$"+word)
			}
			continue
		case strings.HasPrefix(word, "/dev/tcp/") || strings.HasPrefix(word, "/dev/udp/"):
			found(riskNetwork, word[:len("/dev/tcp")])
		case command && i < len(line) && line[i] == '=':
			// An assignment; a command may follow it, and what is assigned is none.
			for i < len(line) && strings.IndexByte(" \t;|&(`\n", line[i]) < 0 {
				i++
			}
			continue
		case command && word[0] == '-' && word != "-":
			continue // an option of sudo and the like
		case command:
			name := path.Base(word)
			if code, ok := l.words[name]; ok {
				found(code, name)
			} else if word == "." {
				found(riskEval, ".")
			}
			command = shellPrefix[name]
			continue
		}
		command = false
	}
}

// shellPrefix are words that another command follows.
var shellPrefix = map[string]bool{
	"if": true, "then": true, "else": true, "elif": true, "while": true, "until": true, "do": true, "time": true, "exec": true, "command": true,
	"sudo": true, "doas": true, "env": true, "nohup": true, "setsid": true, "xargs": true, "builtin": true, "nice": true,
}

func secretName(name string) bool {
	upper := strings.ToUpper(name)
	for _, part := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"} {
		if len(name) < 100 && strings.Contains(upper, part) {
			return true
		}
	}
	return false
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
