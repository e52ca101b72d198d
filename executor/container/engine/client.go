//go:build linux && (amd64 || arm64)

package engine

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

const (
	// answerTime is how long an engine may take for an answer. It takes parts of a
	// second; only one that hangs takes longer.
	answerTime = 60 * time.Second

	// importTime is how long it may take for the files of a runtime.
	importTime = 30 * time.Minute

	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 16 << 20
)

// podman is the name of an engine that differs from Docker in some things.
const podman = "Podman"

// An api is the engine's interface.
type api struct {
	client   *client.Client
	name     string // "Docker" or "Podman"
	version  string
	rootless bool
	mapped   bool // its containers have a user namespace, whatever is asked for
	users    int  // how many identities that has, where it is known
}

// dial opens the interface at the address, and asks the engine what it is.
func dial(ctx context.Context, address string) (*api, error) {
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok || !path.IsAbs(socket) {
		return nil, fmt.Errorf("engine: %q is not the address of an engine; it is unix:// and an absolute path, such as unix:///run/docker.sock", address)
	}
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: 0,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	plain := &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
	c, err := client.New(client.WithHost(address), client.WithHTTPClient(plain),
		client.WithUserAgent("tracon"), client.WithHTTPResponseHook(bound))
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	a := &api{client: c}
	if err := a.ask(ctx, plain); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: asking the engine at %s what it is: %w; start it, or name the address of another", ErrEngine, address, err), c.Close())
	}
	return a, nil
}

// bound keeps an answer from being endless.
func bound(r *http.Response) {
	if r.StatusCode != http.StatusSwitchingProtocols && r.Body != nil {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, maxAnswer), r.Body}
	}
}

func (a *api) ask(ctx context.Context, plain *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v, err := a.client.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err
	}
	if v.Os != "linux" || v.Arch != runtime.GOARCH {
		return fmt.Errorf("it runs containers of %.40q on %.40q, and this host is linux on %s", v.Os, v.Arch, runtime.GOARCH)
	}
	info, err := a.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return err
	}
	a.name, a.version = "Docker", printable(v.Version)
	for _, c := range v.Components {
		if strings.Contains(c.Name, "Podman") {
			a.name = podman
		}
	}
	for _, o := range info.Info.SecurityOptions {
		a.rootless = a.rootless || strings.HasPrefix(o, "name=rootless")
		a.mapped = a.mapped || strings.HasPrefix(o, "name=userns")
	}
	if a.name == podman {
		if err := a.askPodman(ctx, plain); err != nil {
			return err
		}
	}
	a.mapped = a.mapped || a.rootless
	return nil
}

// askPodman asks what Podman does not tell as Docker does: whether it is rootless, and how
// many identities its containers have. A version that does not tell it is taken for none
// that is.
func (a *api) askPodman(ctx context.Context, plain *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/v4.0.0/libpod/info", nil)
	if err != nil {
		return err
	}
	answer, err := plain.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil
	}
	var info struct {
		Host struct {
			Security struct {
				Rootless bool `json:"rootless"`
			} `json:"security"`
			Mappings struct {
				Users []struct {
					Size int `json:"size"`
				} `json:"uidmap"`
			} `json:"idMappings"`
		} `json:"host"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&info); err != nil {
		return fmt.Errorf("what it tells of itself: %w", err)
	}
	a.rootless = a.rootless || info.Host.Security.Rootless
	if a.rootless {
		for _, m := range info.Host.Mappings.Users {
			a.users += m.Size
		}
	}
	return nil
}

// printable returns what people are shown of what an engine says.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s[:min(len(s), 60)])
}

// failed makes an error of ours of what a call of the engine came to.
func failed(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrEngine, what, err) }

// create has the engine make a container, which it must not fetch anything for.
func (a *api) create(ctx context.Context, o order) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	made, err := a.client.ContainerCreate(ctx, o.options())
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%w: %w", ErrImage, err)
	case err != nil:
		return failed("making a container", err)
	case made.ID == "":
		return failed("making a container", errors.New("it says nothing of what it made"))
	}
	return nil
}

// attach returns what is attached to the streams of a container.
func (a *api) attach(ctx context.Context, name string) (client.HijackedResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := a.client.ContainerAttach(ctx, name, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return r.HijackedResponse, failed("attaching to a container", err)
	}
	return r.HijackedResponse, nil
}

func (a *api) start(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := a.client.ContainerStart(ctx, name, client.ContainerStartOptions{}); err != nil {
		return failed("starting a container", err)
	}
	return nil
}

// state returns how a container is; ok is false where there is none of that name.
func (a *api) state(ctx context.Context, name string) (s container.State, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := a.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return s, false, nil
	case err != nil:
		return s, false, failed("looking at a container", err)
	case r.Container.State == nil:
		return s, false, failed("looking at a container", errors.New("it says nothing of its state"))
	}
	return *r.Container.State, true, nil
}

// remove stops every process of a container, removes it, and holds that it is gone.
func (a *api) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var errs []error
	for range 3 { // an engine may be at it already, and say so
		_, killErr := a.client.ContainerKill(ctx, name, client.ContainerKillOptions{Signal: "SIGKILL"})
		_, err := a.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		_, there, lookErr := a.state(ctx, name)
		if lookErr == nil && !there {
			return nil
		}
		if killErr != nil && !errdefs.IsConflict(killErr) && !errdefs.IsNotFound(killErr) {
			err = errors.Join(killErr, err)
		}
		errs = append(errs, err, lookErr)
		if ctx.Err() != nil || client.IsErrConnectionFailed(err) {
			break
		}
	}
	return failed("removing the container "+name, errors.Join(errors.Join(errs...), errors.New("it is still there, as far as the engine tells")))
}

// How often, and how soon, the engine is asked for a list that it could not make: Podman
// fails where a container goes meanwhile, whoever's that is.
const (
	listTries = 10
	listPause = 100 * time.Millisecond
)

// ours returns the names of the containers with this label, and their labels.
func (a *api) ours(ctx context.Context, label, value string) (map[string]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var list client.ContainerListResult
	var err error
	for range listTries {
		list, err = a.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", label+"="+value)})
		if !errdefs.IsInternal(err) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(listPause):
		}
	}
	if err != nil {
		return nil, failed("listing containers", err)
	}
	found := map[string]map[string]string{}
	for _, c := range list.Items {
		if c.Labels[label] == value && c.ID != "" { // whatever the engine thinks of filters
			found[c.ID] = c.Labels
		}
	}
	return found, nil
}

// imageID returns the engine's own name of an image, which nobody can give another.
func (a *api) imageID(ctx context.Context, name string) (id string, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := a.client.ImageInspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, failed("looking for an image", err)
	case r.ID == "":
		return "", false, failed("looking for an image", errors.New("it says nothing of what it found"))
	}
	return r.ID, true, nil
}

// bring makes an image of an archive, under a name without a tag.
func (a *api) bring(ctx context.Context, name string, write func(*tar.Writer) error) error {
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	out, in := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		w := tar.NewWriter(in)
		err := write(w)
		if err == nil {
			err = w.Close()
		}
		_ = in.CloseWithError(err)
		wrote <- err
	}()
	answer, err := a.client.ImageImport(ctx, client.ImageImportSource{Source: out, SourceName: "-"}, name, client.ImageImportOptions{})
	if err == nil {
		err = readProgress(answer)
		answer.Close()
	}
	out.Close()
	if writeErr := <-wrote; writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		return fmt.Errorf("reading a runtime for the engine: %w", writeErr)
	}
	if err != nil {
		return failed("making an image", err)
	}
	return nil
}

// readProgress reads what an engine says while it makes an image: a JSON object for
// each step, and one with an error where it failed.
func readProgress(r io.Reader) error {
	d := json.NewDecoder(r)
	for {
		var step struct {
			Error  string `json:"error"`
			Detail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		switch err := d.Decode(&step); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case step.Error != "" || step.Detail.Message != "":
			return errors.New(printable(slices.Max([]string{step.Error, step.Detail.Message})))
		}
	}
}
