package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/grant"
	"github.com/tracon-go/tracon/internal/strictyaml"
)

// MaxFile is the most bytes that a configuration file may have.
const MaxFile = 1 << 20

// FileName is that of a configuration file in the platform's folder for them.
const FileName = "tracon.yaml"

// A Source is where [Load] looks. The zero Source looks at nothing but defaults
// that need no environment.
type Source struct {
	File   string            // from a flag; must exist. Empty: TRACON_CONFIG, else the platform's, if it is there
	Flags  map[string]string // by key; they win
	Getenv func(string) string
	Dir    string // that relative paths of flags and variables start from
}

// Load reads the configuration.
//
// # Errors
//
// One that names the file and line, the variable or the flag, and what to
// write instead. An unknown key is an error.
func Load(src Source) (*Config, error) {
	if src.Getenv == nil {
		src.Getenv = func(string) string { return "" }
	}
	c := &Config{Store: Sqlite, Executor: defaultExecutor(), Content: bundle.Limits{}.OrDefaults(), Serve: Serve{Listen: DefaultListen, TracesShare: 1}, Fleet: Fleet{Tier: grant.Sandbox}, Runner: Runner{Listen: DefaultRunnerListen, Name: DefaultRunnerName}, origins: map[string]string{}}
	c.Data, c.State = defaultData(src.Getenv), defaultState(src.Getenv)
	if err := c.readFile(src); err != nil {
		return nil, err
	}
	for _, s := range Settings {
		if text := src.Getenv(s.Env()); text != "" {
			if err := c.set(s, text, folder(src.Dir), "variable "+s.Env()); err != nil {
				return nil, err
			}
		}
		if text, ok := src.Flags[s.Key]; ok {
			if err := c.set(s, text, folder(src.Dir), "flag --"+strings.ReplaceAll(s.Key, "_", "-")); err != nil {
				return nil, err
			}
		}
	}
	if c.Data == "" && c.Server == "" {
		return nil, errors.New("there is no folder for data: neither HOME nor XDG_DATA_HOME is set; name one with --data")
	}
	switch {
	case c.Store == Postgres && c.DatabaseURL == "":
		return nil, errors.New("store is postgres, and there is no address of the database; set database_url, best with the variable TRACON_DATABASE_URL")
	case c.Store != Postgres && c.DatabaseURL != "":
		return nil, fmt.Errorf("database_url is set (%s), and store is %s; set store to postgres, or take the address away", c.origins["database_url"], c.Store)
	}
	return c, nil
}

func (c *Config) set(s Setting, text string, from folder, origin string) error {
	if err := s.set(c, text, from); err != nil {
		return fmt.Errorf("%s, %s: %w", origin, s.Key, err)
	}
	c.origins[s.Key] = origin
	return nil
}

func (c *Config) readFile(src Source) error {
	path, must := src.File, true
	if path == "" {
		path = src.Getenv("TRACON_CONFIG")
	}
	if path == "" {
		path, must = defaultFile(src.Getenv), false
	}
	if path == "" {
		return nil
	}
	path = folder(src.Dir).abs(path)
	data, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the configuration file: %w", err)
	}
	root, err := strictyaml.Parse(data, MaxFile)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.File = path
	if root == nil || root.Kind == strictyaml.Null {
		return nil
	}
	if root.Kind != strictyaml.Map {
		return fmt.Errorf("%s:%d: it is %s; write settings as key: value", path, root.Line, root.Kind)
	}
	for _, m := range root.Members {
		i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Key == m.Key })
		if i < 0 {
			return fmt.Errorf("%s:%d: unknown setting %q; `tracon config print` lists them all", path, m.Line, m.Key)
		}
		text, err := flat(Settings[i], m.Value)
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", path, m.Line, m.Key, err)
		}
		if err := c.set(Settings[i], text, folder(filepath.Dir(path)), fmt.Sprintf("%s:%d", path, m.Line)); err != nil {
			return err
		}
	}
	return nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, MaxFile)
	}
	return data, err
}

// flat turns a value into the text that a variable or flag would have.
func flat(s Setting, n *strictyaml.Node) (string, error) {
	scalar := func(n *strictyaml.Node) (string, error) {
		if n.Kind == strictyaml.List || n.Kind == strictyaml.Map || n.Kind == strictyaml.Null {
			return "", fmt.Errorf("line %d: it is %s, and a text is wanted", n.Line, n.Kind)
		}
		if (s.list || s.dict) && strings.ContainsAny(n.Text, ",") {
			return "", fmt.Errorf("line %d: %q holds a comma", n.Line, n.Text)
		}
		return n.Text, nil
	}
	var texts []string
	switch {
	case s.list && n.Kind == strictyaml.List:
		for _, item := range n.Items {
			text, err := scalar(item)
			if err != nil {
				return "", err
			}
			texts = append(texts, text)
		}
	case s.dict && n.Kind == strictyaml.Map:
		for _, m := range n.Members {
			text, err := scalar(m.Value)
			if err != nil {
				return "", err
			}
			texts = append(texts, m.Key+"="+text)
		}
	case s.list:
		return "", fmt.Errorf("it is %s; write a list", n.Kind)
	case s.dict:
		return "", fmt.Errorf("it is %s; write a map", n.Kind)
	default:
		return scalar(n)
	}
	return strings.Join(texts, ","), nil
}

// A Value is one setting as it is in force.
type Value struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Env    string `json:"env"`
	Doc    string `json:"doc"`
}

// Given reports whether somebody has set the setting: its value is no default.
func (c *Config) Given(key string) bool { return c.origins[key] != "" }

// Origin says where the setting's value comes from, as [Value] does; empty: it is the default.
func (c *Config) Origin(key string) string { return c.origins[key] }

// Values returns every setting with its origin, in the order of the table.
func (c *Config) Values() []Value {
	values := make([]Value, len(Settings))
	for i, s := range Settings {
		origin := c.origins[s.Key]
		if origin == "" {
			origin = "default"
		}
		values[i] = Value{s.Key, s.text(c), origin, s.Env(), s.Doc}
	}
	return values
}

func defaultData(getenv func(string) string) string {
	switch home := getenv("HOME"); {
	case runtime.GOOS == "windows":
		return under(getenv("LOCALAPPDATA"), "tracon")
	case runtime.GOOS == "darwin":
		return under(home, "Library", "Application Support", "tracon")
	case getenv("XDG_DATA_HOME") != "":
		return under(getenv("XDG_DATA_HOME"), "tracon")
	default:
		return under(home, ".local", "share", "tracon")
	}
}

// defaultState is "" where the environment has no place for it.
func defaultState(getenv func(string) string) string {
	switch home := getenv("HOME"); {
	case runtime.GOOS == "windows":
		return under(getenv("LOCALAPPDATA"), "tracon-state")
	case runtime.GOOS == "darwin":
		return under(home, "Library", "Application Support", "tracon-state")
	case getenv("XDG_STATE_HOME") != "":
		return under(getenv("XDG_STATE_HOME"), "tracon")
	default:
		return under(home, ".local", "state", "tracon")
	}
}

func defaultFile(getenv func(string) string) string {
	switch home := getenv("HOME"); {
	case runtime.GOOS == "windows":
		return under(getenv("APPDATA"), "tracon", FileName)
	case runtime.GOOS == "darwin":
		return under(home, "Library", "Preferences", "tracon", FileName)
	case getenv("XDG_CONFIG_HOME") != "":
		return under(getenv("XDG_CONFIG_HOME"), "tracon", FileName)
	default:
		return under(home, ".config", "tracon", FileName)
	}
}

func under(base string, elem ...string) string {
	if base == "" {
		return ""
	}
	return filepath.Join(append([]string{base}, elem...)...)
}
