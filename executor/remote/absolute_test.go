package remote_test

import "runtime"

// absolute is the path of an interpreter that is not looked at.
var absolute = map[bool]string{true: `C:\sh.exe`, false: "/bin/sh"}[runtime.GOOS == "windows"]
