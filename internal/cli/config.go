package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) configCmd() *cobra.Command {
	return group("config", "Show what this installation is told",
		`  tracon config print`,
		here(&cobra.Command{
			Use: "print",
			Example: `  tracon config print
  TRACON_SLOTS=4 tracon --config /etc/tracon.yaml config print --json`,
			Short: "Print every setting with its value and where it came from",
			Args:  cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				c, err := a.load()
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						File     string `json:"file"`
						Settings any    `json:"settings"`
					}{c.File, c.Values()})
				}
				if c.File == "" {
					fmt.Fprintln(a.out, "# no configuration file: the host's switch and allow-list are kept in the data folder (tracon doctor shows them)")
				}
				rows := [][]string{{"SETTING", "VALUE", "ORIGIN", "VARIABLE", "MEANING"}}
				for _, v := range c.Values() {
					rows = append(rows, []string{v.Key, v.Value, v.Origin, v.Env, v.Doc})
				}
				return a.table(rows)
			},
		}))
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Example: `  tracon version --json`,
		Short:   "Print the version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if a.json {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.out, "tracon %s %s %s %s\n", v.Version, v.Revision, v.Go, v.Platform)
			return nil
		},
	}
}

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version is that of this program, as it was built.
func version() versionJSON {
	v := versionJSON{"(devel)", "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	return v
}
