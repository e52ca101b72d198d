package fleet_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/tracon-go/tracon/executor"
	"github.com/tracon-go/tracon/executor/executortest"
	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/gate"
	"github.com/tracon-go/tracon/internal/broker"
)

// raw is a link that says whatever it likes, with a runner's key.
func raw(t *testing.T, address string, seed []byte, refused chan<- string) *nats.Conn {
	t.Helper()
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := nats.Connect("nats://"+address, nats.Nkey(public, pair.Sign),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err.Error() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// M12, B9: the credentials of one pool neither hear nor say anything in another; and a
// runner hears nothing that is told to, or said by, another runner of its own pool.
func TestPoolsApart(t *testing.T) {
	t.Parallel()
	g := &ground{t: t, seeds: map[string][]byte{}, world: executortest.NewWorld(map[string]gate.Interpreter{"py": {Name: "python-3.12"}})}
	var pools []broker.Pool
	for _, p := range []struct{ pool, runner string }{{"one", "ann"}, {"two", "bob"}} {
		b := broker.Pool{Name: p.pool, Members: []broker.Member{g.member(p.pool, p.runner), g.member(p.pool, p.runner+" too")}}
		b.HostHear, b.HostSay = fleet.HostSubjects(p.pool)
		pools = append(pools, b)
	}
	var err error
	if g.server, err = broker.Start(broker.Config{Name: "test", Listen: "127.0.0.1:0", Pools: pools}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.server.Close)
	e := g.executor(func(c *fleet.Config) {
		c.Pools = []fleet.Pool{{Name: "one", Tenants: []string{"acme"}, Link: g.host("one")}, {Name: "two", Others: true, Link: g.host("two")}}
	})

	refused := make(chan string, 100)
	spy := raw(t, g.server.Address(), g.seeds["ann too"], refused)
	for _, subject := range []string{">", "tracon.>", "tracon.one.at.ann.>", "tracon.one.from.*", "tracon.one.offer.>", "_INBOX.>", "_INBOX.host.>"} {
		if _, err := spy.Subscribe(subject, func(m *nats.Msg) { t.Errorf("a runner heard %s", m.Subject) }); err != nil {
			t.Fatal(err)
		}
		if err := spy.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
		case <-time.After(patience):
			t.Fatalf("nobody refused that a runner hears %s", subject)
		}
	}
	for _, subject := range []string{"tracon.one.at.ann.x.begin", "tracon.one.offer.sh.process._", "tracon.one.who", "$SRV.PING"} {
		if err := errors.Join(spy.Publish(subject, []byte("x")), spy.Flush()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
		case <-time.After(patience):
			t.Fatalf("nobody refused that a runner says %s", subject)
		}
	}

	g.join("ann", echo, func(j *fleet.Joining) { j.Pool = "one" })
	g.await(e, 1)
	if res, err := e.Execute(t.Context(), g.request(executortest.Order{Tenant: "acme"})); err != nil || string(res.Stdout) != "hello" {
		t.Errorf("got %q, %v in its own pool", res.Stdout, err)
	}
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); !errors.Is(err, fleet.ErrNoRunner) {
		t.Errorf("M12: got error %v for a tenant whose pool is empty, want ErrNoRunner", err)
	}
	// A key of the first pool joins the second: it gets the first one's account, and is refused.
	g.seeds["mallory"] = g.seeds["ann too"]
	g.join("mallory", echo, func(j *fleet.Joining) { j.Pool = "two" })
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); !errors.Is(err, fleet.ErrNoRunner) {
		t.Errorf("M12: got error %v, want ErrNoRunner: a key of another pool takes no runs here", err)
	}
}

// M04: a certificate that the runner does not know, and plain text, link to nothing.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	g := &ground{t: t, seeds: map[string][]byte{}, world: executortest.NewWorld(map[string]gate.Interpreter{"py": {Name: "python-3.12"}})}
	p := broker.Pool{Name: pool1, Members: []broker.Member{g.member(pool1, "one"), g.member(pool1, "two")}}
	p.HostHear, p.HostSay = fleet.HostSubjects(pool1)
	var err error
	if g.server, err = broker.Start(broker.Config{Name: "test", Listen: "127.0.0.1:0", Pools: []broker.Pool{p}, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.server.Close)
	e := g.executor(nil)
	secure := "tls://" + g.server.Address()
	g.join("two", echo, func(j *fleet.Joining) { j.Link.URLs = []string{secure} }) // the system does not know who signed it
	g.join("two", echo, nil)                                                       // plain text
	g.join("one", echo, func(j *fleet.Joining) { j.Link.URLs, j.Link.CAs = []string{secure}, pool })
	if all := g.await(e, 1); all[0].Info.Name != "one" {
		t.Errorf("got %+v, want the runner that knows the certificate", all)
	}
}

const pool1 = pool

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// B9, R21: three servers that are one cluster. The one that everybody speaks to dies in
// the middle of load: each run ends once, as done, unknown or not started, and none is
// started twice.
func TestClusterNodeDies(t *testing.T) {
	t.Parallel()
	g := &ground{t: t, seeds: map[string][]byte{}, world: executortest.NewWorld(map[string]gate.Interpreter{"py": {Name: "python-3.12"}})}
	p := broker.Pool{Name: pool, Members: []broker.Member{g.member(pool, "one"), g.member(pool, "two"), g.member(pool, "three")}}
	seed, public, err := fleet.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	p.Hosts = []broker.Member{{Name: "host", Key: public}}
	p.HostHear, p.HostSay = fleet.HostSubjects(pool)
	var urls, routes []string
	var servers []*broker.Server
	for _, name := range []string{"a", "b", "c"} {
		s, err := broker.Start(broker.Config{Name: name, Listen: "127.0.0.1:0", Pools: []broker.Pool{p},
			Cluster: broker.Cluster{Listen: "127.0.0.1:0", Routes: routes, Secret: "a secret of the test alone"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		servers, urls, routes = append(servers, s), append(urls, "nats://"+s.Address()), append(routes, s.ClusterAddress())
	}
	g.server = servers[0]
	e := g.executor(func(c *fleet.Config) {
		c.Pools[0].Link, c.Lost, c.Reply = fleet.Link{URLs: urls, Seed: seed}, 3*time.Second, fleet.DefaultReply // what the dead one had is waited for in vain
	})
	var mu sync.Mutex
	starts := map[string]int{}
	for _, name := range []string{"one", "two", "three"} {
		g.join(name, counting(&mu, starts), func(j *fleet.Joining) { j.Link.URLs = urls })
	}
	g.await(e, 3)
	var all sync.WaitGroup
	ended := map[string]error{}
	const n = 60
	for i := range n {
		req := g.request(executortest.Order{})
		all.Go(func() {
			_, err := e.Execute(t.Context(), req)
			mu.Lock()
			defer mu.Unlock()
			if _, twice := ended[req.ID()]; twice {
				t.Errorf("run %s ended twice", req.ID())
			}
			ended[req.ID()] = err
		})
		if i == n/2 {
			all.Go(servers[0].Close)
		}
	}
	all.Wait()
	for id, err := range ended {
		unknown, not := errors.Is(err, executor.ErrUnknown), errors.Is(err, executor.ErrUnavailable)
		switch {
		case err == nil && starts[id] != 1, starts[id] > 1, not && starts[id] > 0, err != nil && !unknown && !not:
			t.Errorf("R21: run %s was started %d times and ended as %v", id, starts[id], err)
		}
	}
	g.await(e, 3)
	if _, err := e.Execute(t.Context(), g.request(executortest.Order{})); err != nil {
		t.Errorf("with two servers left: %v", err)
	}
}

// M05: in plain text a link goes to the servers that it was told of, and not to those that
// a server tells of, which may be anywhere.
func TestServersThatAServerTellsOf(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go tellsOfAnother(c)
		}
	}()
	url := "nats://" + l.Addr().String()
	other, err := nats.Connect(url) // which follows what it is told
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got := other.DiscoveredServers(); len(got) != 1 {
		t.Fatalf("the server tells of %q, want one", got)
	}
	seed, _, err := fleet.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := fleet.Link{URLs: []string{url}, Seed: seed}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	for until := time.Now().Add(patience); !ours.IsConnected(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the link does not stand: %v", ours.LastError())
		}
	}
	if got := ours.Servers(); len(got) != 1 || got[0] != url {
		t.Errorf("M05: the link would go to %q, want %s alone", got, url)
	}
}

// tellsOfAnother is a server that takes everybody, and tells of one that is elsewhere.
func tellsOfAnother(c net.Conn) {
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(`INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":8388608,"nonce":"abc","connect_urls":["192.0.2.1:4222"]}` + "\r\n")); err != nil {
		return
	}
	for in := bufio.NewScanner(c); in.Scan(); {
		if in.Text() == "PING" {
			if _, err := c.Write([]byte("PONG\r\n")); err != nil {
				return
			}
		}
	}
}
