//go:build linux && (amd64 || arm64)

package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/tracon-go/tracon/bundle"
	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/container/engine"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/enginecase"
)

// A proxy stands before an engine, and breaks one thing at a time.
type proxy struct {
	dir   string
	mu    sync.Mutex
	what  string // what is broken: how a path ends
	how   func(w http.ResponseWriter, r *http.Request)
	alter func(create map[string]any) // what a container is made by
	met   chan struct{}               // gets a word for each request that was broken
	conns map[net.Conn]bool
}

func (p *proxy) address() string { return "unix://" + p.dir + "/s" }

// stand begins to listen before the engine.
func stand(t *testing.T, d *daemon) *proxy {
	t.Helper()
	dir, err := os.MkdirTemp(top, "p") // short, as the paths of sockets must be
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{dir: dir, met: make(chan struct{}, 100), conns: map[net.Conn]bool{}}
	l, err := net.Listen("unix", p.dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "unix", d.Socket())
			if err == nil {
				p.mu.Lock()
				p.conns[c] = true
				p.mu.Unlock()
			}
			return c, err
		}},
		FlushInterval: -1,
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		how, alter := p.how, p.alter
		broken := p.what != "" && strings.HasSuffix(r.URL.Path, p.what)
		p.mu.Unlock()
		if broken {
			p.met <- struct{}{}
			how(w, r)
			return
		}
		if alter != nil && strings.HasSuffix(r.URL.Path, "/containers/create") {
			if err := rewrite(r, alter); err != nil {
				http.Error(w, `{"message":"the proxy failed"}`, http.StatusInternalServerError)
				t.Error(err)
				return
			}
		}
		pass.ServeHTTP(w, r)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return p
}

func (p *proxy) breaks(what string, how func(w http.ResponseWriter, r *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.how = what, how
}

// rewrite changes the object in a request.
func rewrite(r *http.Request, change func(map[string]any)) error {
	body := map[string]any{}
	d := json.NewDecoder(r.Body)
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return err
	}
	change(body)
	text, err := json.Marshal(body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return err
}

// alters has the engine make its containers by something else than it was told.
func (p *proxy) alters(change func(create map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alter = change
}

// cut ends every connection with the engine.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// script returns the order of a shell script that is alone in its skill.
func script(text string) executortest.Order {
	return executortest.Order{
		Files:  []bundle.File{{Path: "SKILL.md", Data: []byte("# A skill\n")}, {Path: "main.sh", Data: []byte(text)}},
		Script: "main.sh", Mode: gate.Argv,
	}
}

// admit returns a request for the script, and what it says live.
func admit(t testing.TB, text string, timeout time.Duration) (executor.Request, *gate.Live) {
	t.Helper()
	return admitFor(t, interpreters(t), text, timeout)
}

// admitFor is admit with other interpreters.
func admitFor(t testing.TB, found map[string]gate.Interpreter, text string, timeout time.Duration) (executor.Request, *gate.Live) {
	t.Helper()
	o := script(text)
	o.Policy.Timeout, o.Live = timeout, gate.NewLive(0)
	req, err := executortest.NewWorld(found).Admit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return req, o.Live
}

// asker returns a client of the tests' own.
func asker(t testing.TB, d *daemon) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(d.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// listed returns what the engine tells of the containers that are ours.
func listed(t testing.TB, c *client.Client) []container.Summary {
	t.Helper()
	var list client.ContainerListResult
	soon(t, "a list of the containers", func() (ok bool) { // Podman fails where one goes meanwhile
		var err error
		list, err = c.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "org.tracon.run")})
		if err != nil && !errdefs.IsInternal(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return list.Items
}

// containers returns the names of those of the engine that are ours.
func containers(t testing.TB, c *client.Client) (ids []string) {
	t.Helper()
	for _, i := range listed(t, c) {
		ids = append(ids, i.ID)
	}
	return ids
}

// soon waits until the condition holds.
func soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(enginecase.WaitTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Errorf("after %s it is still not so: %s", enginecase.WaitTime, what)
}

// withEngines reports whether this test run may start engines: as root, and where tests
// are not short, as in ./check engines.
func withEngines(t testing.TB) bool {
	t.Helper()
	if testing.Short() {
		t.Log("short: ./check engines shows it")
		return false
	}
	if !root() {
		t.Log("engines are started by root")
		return false
	}
	return true
}

var errGaveUp = errors.New("the caller gave up")

func answer(status int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func drop(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		c.Close()
	}
}

// Case 56: an engine that hangs, fails, is gone or answers nonsense before the script is
// started is told as not started, and nothing is left.
func TestBrokenBefore(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			p, ask := stand(t, d), asker(t, d)
			e := open(t, d, engine.Config{Address: p.address()})
			for _, tc := range []struct {
				name, what string
				how        func(http.ResponseWriter, *http.Request)
				want       error
			}{
				{"hanging on create", "/containers/create", hang, errGaveUp},
				{"failing on create", "/containers/create", answer(500, `{"message":"no space left on device"}`), engine.ErrEngine},
				{"gone on create", "/containers/create", drop, engine.ErrEngine},
				{"nonsense on create", "/containers/create", answer(201, `{"Id":`), engine.ErrEngine},
				{"nothing on create", "/containers/create", answer(201, `{}`), engine.ErrEngine},
				{"hanging on attach", "/attach", hang, errGaveUp},
				{"nonsense on attach", "/attach", answer(200, `hello`), engine.ErrEngine},
				{"gone on attach", "/attach", drop, engine.ErrEngine},
				{"hanging on start", "/start", hang, errGaveUp},
				{"failing on start", "/start", answer(500, `{"message":"OCI runtime create failed"}`), engine.ErrEngine},
				{"silent after start", "/start", answer(204, ``), errGaveUp},
				{"no image", "/containers/create", answer(404, `{"message":"No such image"}`), engine.ErrImage}, // the last: it has the image looked for again
			} {
				t.Run(tc.name, func(t *testing.T) {
					req, _ := admit(t, "echo never\n", time.Minute)
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					p.breaks(tc.what, tc.how)
					defer p.breaks("", nil)
					if tc.want == errGaveUp {
						go func() {
							<-p.met
							cancel(errGaveUp)
						}()
					}
					res, err := e.Execute(ctx, req)
					if !errors.Is(err, tc.want) || tc.want != errGaveUp && !errors.Is(err, executor.ErrUnavailable) || !res.Ending.IsZero() {
						t.Errorf("got %v, %v", res.Ending, err)
					}
					if left := containers(t, ask); len(left) > 0 {
						t.Errorf("B3: there is still %q", left)
					}
					for len(p.met) > 0 {
						<-p.met
					}
				})
			}
			p.breaks("", nil)
			var res executor.Result
			soon(t, "a run after all that", func() bool { // "no image" had it looked for again
				req, _ := admit(t, "echo on\n", time.Minute)
				var err error
				res, err = e.Execute(t.Context(), req)
				return err == nil
			})
			if string(res.Stdout) != "on\n" {
				t.Errorf("got %q", res.Stdout)
			}
		})
	}
}

// B3: an engine that cannot make its list, as another's container goes at that moment, is
// asked again; one that never can is told.
func TestListedAgain(t *testing.T) {
	if !withEngines(t) {
		return
	}
	d := engineOf(t, "podman")
	for _, always := range []bool{false, true} {
		p := stand(t, d)
		p.breaks("/containers/json", func(w http.ResponseWriter, r *http.Request) {
			<-p.met
			if !always {
				p.breaks("", nil)
			}
			answer(500, `{"message":"getting container from store: container not known"}`)(w, r)
		})
		e, err := engine.New(engine.Config{Address: p.address(), Runtime: filepath.Join(t.TempDir(), "run")})
		if always != errors.Is(err, engine.ErrEngine) {
			t.Errorf("always %t: got %v", always, err)
		}
		if err == nil {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// R22, B3: a container that an engine makes when its caller has long left, and which was
// not there to be removed then, is removed when it comes.
func TestMadeLate(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			p, ask := stand(t, d), asker(t, d)
			e := open(t, d, engine.Config{Address: p.address()})
			direct := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", d.Socket())
			}}}
			status := make(chan int, 1)
			p.breaks("/containers/create", func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
				made, err := direct.Post("http://engine"+r.URL.RequestURI(), "application/json", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					status <- 0
					return
				}
				made.Body.Close()
				status <- made.StatusCode
			})
			req, _ := admit(t, "echo never\n", time.Minute)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				<-p.met
				cancel(errGaveUp)
			}()
			if _, err := e.Execute(ctx, req); !errors.Is(err, errGaveUp) {
				t.Errorf("got %v", err)
			}
			if got := <-status; got != http.StatusCreated {
				t.Fatalf("the engine answered %d, and made nothing", got)
			}
			soon(t, "no container of ours", func() bool { return len(containers(t, ask)) == 0 })
		})
	}
}

// Case 56: what becomes of a script whose engine is lost after it was started is
// unknown, and its container goes as soon as the engine lets it.
func TestBrokenAfter(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := engineOf(t, name)
			ask := asker(t, d)
			for _, tc := range []struct {
				name string
				does func(p *proxy)
			}{
				{"the connection is cut", func(p *proxy) { p.cut() }},
				{"the container is removed by another", func(*proxy) {
					for _, id := range containers(t, ask) {
						_, _ = ask.ContainerKill(context.Background(), id, client.ContainerKillOptions{Signal: "KILL"})
						_, _ = ask.ContainerRemove(context.Background(), id, client.ContainerRemoveOptions{Force: true})
					}
				}},
				{"the engine does not remove", func(p *proxy) {
					p.breaks("/kill", answer(500, `{"message":"no"}`))
					p.cut()
					go func() { // it lets the container go after some time
						<-p.met
						p.breaks("", nil)
					}()
				}},
			} {
				t.Run(tc.name, func(t *testing.T) {
					p := stand(t, d)
					e := open(t, d, engine.Config{Address: p.address()})
					req, live := admit(t, "echo ready\nsleep 300\n", 5*time.Minute)
					go func() {
						<-live.Chunks()
						tc.does(p)
					}()
					res, err := e.Execute(t.Context(), req)
					if !errors.Is(err, executor.ErrUnknown) || !errors.Is(err, engine.ErrEngine) || !res.Ending.IsZero() {
						t.Errorf("got %v, %v", res.Ending, err)
					}
					soon(t, "no container of ours", func() bool { return len(containers(t, ask)) == 0 })
				})
			}
		})
	}
}

// Case 56: an engine that is killed in the middle of a run, and started again: the run
// is unknown, its container is removed, and the next run runs. An image that was removed
// meanwhile is brought again.
func TestRestartedEngine(t *testing.T) {
	if !withEngines(t) {
		return
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			d := enginecase.New(t, name, top)
			defer func() {
				if err := d.End(); err != nil {
					t.Error(err)
				}
			}()
			runtime := filepath.Join(t.TempDir(), "run")
			e := open(t, d, engine.Config{Runtime: runtime})
			req, live := admit(t, "echo ready\nsleep 300\n", 5*time.Minute)
			killed := make(chan error)
			go func() {
				<-live.Chunks()
				killed <- d.Kill()
			}()
			if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnknown) {
				t.Errorf("got %v", err)
			}
			if err := <-killed; err != nil {
				t.Fatal(err)
			}
			if _, err := e.Execute(t.Context(), req); !errors.Is(err, executor.ErrUnavailable) || !errors.Is(err, engine.ErrEngine) {
				t.Errorf("while the engine is gone: %v", err)
			}
			if err := d.Start(); err != nil {
				t.Fatal(err)
			}
			ask := asker(t, d)
			soon(t, "no container of ours", func() bool { return len(containers(t, ask)) == 0 })
			list, err := ask.ImageList(t.Context(), client.ImageListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range list.Items {
				if _, err := ask.ImageRemove(t.Context(), i.ID, client.ImageRemoveOptions{Force: true}); err != nil {
					t.Fatal(err)
				}
			}
			on, _ := admit(t, "echo on\n", time.Minute)
			if _, err := e.Execute(t.Context(), on); !errors.Is(err, engine.ErrImage) || !errors.Is(err, executor.ErrUnavailable) {
				t.Errorf("without its image: %v", err)
			}
			soon(t, "a run in an image that was brought again", func() bool {
				res, err := e.Execute(t.Context(), on)
				return err == nil && string(res.Stdout) == "on\n"
			})
		})
	}
}
