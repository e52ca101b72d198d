'use strict';
// The agent starts Node.js with this before a run is known (--require, and as the script).
// It waits to be told a folder, a script and its words, and Node.js then loads that script
// in its own place. Where anything is not as expected it ends without a word, and the agent
// starts the script as ever. Each worker of the script's loads this, too, and forgets it.
const Module = require('module');
const forget = () => {
  process.execArgv.length -= 2; // --require, and this
  Object.defineProperty(process, '_preload_modules', { value: [] });
  delete require.cache[__filename];
};
if (require.main === module) {
  Module.runMain(process.argv[1]); // this Node.js looks for its script in another way
} else if (require('worker_threads').isMainThread) {
  try {
    const fs = require('fs');
    fs.writeSync(6, 'w');
    const told = [];
    for (let n = 1; n > 0;) {
      const b = Buffer.alloc(65536);
      n = fs.readSync(5, b);
      told.push(b.subarray(0, n));
    }
    const [folder, ...words] = Buffer.concat(told).toString().split('\0');
    process.chdir(folder);
    fs.accessSync(words[0]);
    process.argv.length = 1;
    for (const w of words) process.argv.push(w);
    forget();
    Module._pathCache[__filename + '\0'] = words[0]; // where it looks for this script there is that one
    fs.closeSync(5);
    fs.writeSync(6, 'g');
    fs.closeSync(6);
  } catch {
    process.reallyExit(1);
  }
} else {
  forget();
}
