package outbound

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func reachOf(t *testing.T, words ...string) Reach {
	t.Helper()
	r, err := ParseReach("peer_reach", words)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// W10: what a name resolves to decides, for the addresses in every dress; metadata of
// clouds is out of reach whatever the words.
func TestCheck(t *testing.T) {
	tests := []struct {
		address string
		needs   string // word that opens it; "never"; empty: open
	}{
		{"93.184.215.14", ""}, {"2606:2800:21f:cb07:6820:80da:af6b:8b2c", ""}, {"2001:4860:4860::8888", ""}, {"::ffff:93.184.215.14", ""},
		{"127.0.0.1", Loopback}, {"127.9.9.9", Loopback}, {"::1", Loopback}, {"::ffff:127.0.0.1", Loopback}, {"64:ff9b::7f00:1", Loopback}, {"2002:7f00:1::", Loopback},
		{"10.0.0.1", Private}, {"172.16.3.4", Private}, {"192.168.1.1", Private}, {"fd00::1", Private}, {"::ffff:10.0.0.1", Private}, {"64:ff9b::a00:1", Private}, {"2002:a00:1::1", Private},
		{"169.254.169.254", "never"}, {"::ffff:169.254.169.254", "never"}, {"64:ff9b::a9fe:a9fe", "never"}, {"2002:a9fe:a9fe::", "never"}, {"fe80::1", "never"}, {"fe80::1%eth0", "never"},
		{"fd00:ec2::254", "never"}, {"fd20:ce::254", "never"}, {"168.63.129.16", "never"}, {"::ffff:168.63.129.16", "never"}, {"100.100.100.200", "never"}, {"192.0.0.192", "never"},
		{"0.0.0.0", "never"}, {"0.1.2.3", "never"}, {"::", "never"}, {"::ffff:0.0.0.0", "never"}, {"64:ff9b::", "never"}, {"::7f00:1", "never"}, {"100.64.0.1", "never"},
		{"224.0.0.1", "never"}, {"ff02::1", "never"}, {"ff01::1", "never"}, {"255.255.255.255", "never"}, {"240.0.0.1", "never"}, {"198.18.0.1", "never"}, {"192.88.99.1", "never"},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", "never"}, {"64:ff9b:1::1", "never"}, {"2001:db8::1", "never"}, {"3fff::1", "never"}, {"fec0::1", "never"},
	}
	for _, tt := range tests {
		for _, words := range [][]string{nil, {Loopback}, {Private}, {Loopback, Private}} {
			r := reachOf(t, words...)
			open := tt.needs == ""
			for _, w := range words {
				open = open || tt.needs == w
			}
			err := r.Check(netip.MustParseAddr(tt.address))
			if (err == nil) != open || err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("%s with %v: %v, want open %v", tt.address, words, err, open)
			}
			if err != nil && tt.needs != "never" && !strings.Contains(err.Error(), "say "+tt.needs+" in peer_reach") {
				t.Errorf("%s: %q does not say what opens it", tt.address, err)
			}
		}
	}
	if err := (Reach{}).Check(netip.Addr{}); !errors.Is(err, ErrRefused) {
		t.Errorf("no address: %v", err)
	}
}

// W10: what the dialer is about to connect to is an address, or nothing is connected to.
func TestControl(t *testing.T) {
	for _, address := range []string{"nonsense", "", "localhost:80", "0x7f.1:80", "2130706433:80", "127.1:80", "[::1]", "127.0.0.1:80", "[::ffff:127.0.0.1]:80"} {
		if err := (Reach{}).control("tcp", address, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v, want ErrRefused", address, err)
		}
	}
	if err := (Reach{}).control("tcp", "93.184.215.14:443", nil); err != nil {
		t.Error(err)
	}
}

// W10: schemes that are none of ours, and http but to this machine by the word, are
// refused before anything is resolved; no error shows a password.
func TestCheckURL(t *testing.T) {
	tests := []struct {
		name, url string
		words     []string
		open      bool
	}{
		{"https", "https://peer.example.org/x", nil, true},
		{"http", "http://peer.example.org/x", []string{Loopback, Private}, false},
		{"http here, without the word", "http://127.0.0.1:8080", []string{Private}, false},
		{"http here", "http://127.0.0.1:8080", []string{Loopback}, true},
		{"http here by name", "http://localhost:8080", []string{Loopback}, true},
		{"http here by IPv6", "http://[::1]:8080", []string{Loopback}, true},
		{"http in another dress", "http://2130706433/", []string{Loopback}, false},
		{"a name that only begins so", "http://localhost.example.org/", []string{Loopback}, false},
		{"a file", "file:///etc/passwd", []string{Loopback}, false},
		{"gopher", "gopher://127.0.0.1:70/", []string{Loopback}, false},
		{"a socket", "unix:///run/x.sock", []string{Loopback}, false},
		{"no scheme", "//peer.example.org/x", nil, false},
		{"no host", "https:///x", nil, false},
		{"a password", "https://u:secret@peer.example.org/", nil, false},
		{"a fragment", "https://peer.example.org/#f", nil, false},
	}
	for _, tt := range tests {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		err = reachOf(t, tt.words...).CheckURL(u)
		if (err == nil) != tt.open || err != nil && (!errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want open %v", tt.name, err, tt.open)
		}
	}
	if _, err := ParseReach("peer_reach", []string{"everywhere"}); err == nil {
		t.Error("a word that is none was taken")
	}
}

// W10: without the word nothing on this machine is connected to, by whatever name; a
// redirect is an answer like any other; an answer has its bound.
func TestTransport(t *testing.T) {
	var asked, followed atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = io.WriteString(w, "12345678") })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/followed", http.StatusFound) })
	mux.HandleFunc("/followed", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	plain, secure := httptest.NewServer(mux), httptest.NewTLSServer(mux)
	defer plain.Close()
	defer secure.Close()
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig
	get := func(r Reach, address string, most int64) (int, string, error) {
		tr := r.Transport(Options{TLS: roots, MaxAnswer: most})
		defer tr.CloseIdleConnections()
		answer, err := Client(tr, 0).Get(address)
		if err != nil {
			return 0, "", err
		}
		b, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b), errors.Join(err, answer.Body.Close())
	}
	for _, address := range []string{plain.URL, secure.URL, strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), strings.Replace(secure.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		if _, _, err := get(reachOf(t, Private), address, 0); !errors.Is(err, ErrRefused) || asked.Load() != 0 {
			t.Errorf("%s: %v, asked %d times; want ErrRefused", address, err, asked.Load())
		}
	}
	here := reachOf(t, Loopback)
	for _, address := range []string{plain.URL, secure.URL} {
		if status, body, err := get(here, address, 8); status != 200 || body != "12345678" || err != nil {
			t.Errorf("%s: %d, %q, %v", address, status, body, err)
		}
		if _, body, err := get(here, address, 7); body != "1234567" || !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %q, %v; want what fits, and ErrTooLarge", address, body, err)
		}
		if status, _, err := get(here, address+"/away", 0); status != http.StatusFound || err != nil || followed.Load() != 0 {
			t.Errorf("%s: %d, %v, followed %d times", address, status, err, followed.Load())
		}
	}
	strange, err := http.NewRequest(http.MethodPost, "http://peer.example.org", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	body := &closes{Reader: strings.NewReader("body")}
	strange.Body = body
	if _, err := here.Transport(Options{}).RoundTrip(strange); !errors.Is(err, ErrRefused) || !body.closed {
		t.Errorf("%v, body closed: %v", err, body.closed)
	}
}

// W10: by http one is asked that was named, and no other; where it may be does not change.
func TestPlain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "it") }))
	defer server.Close()
	name := strings.Replace(server.URL, "127.0.0.1", "localhost.localdomain", 1) // by no name of this machine
	host := strings.TrimPrefix(server.URL, "http://")
	for _, tt := range []struct {
		name, plain, url string
		words            []string
		refused          string
	}{
		{"out of reach", host, server.URL, nil, "of this machine"},
		{"in reach", host, server.URL, []string{Loopback}, ""},
		{"another", "registry.example.org", name, []string{Loopback}, "must be https"},
		{"another port", "localhost.localdomain:1", name, []string{Loopback}, "must be https"},
		{"with a password", host, strings.Replace(server.URL, "http://", "http://u:p@", 1), []string{Loopback}, "no address"},
	} {
		tr := reachOf(t, tt.words...).Transport(Options{Plain: tt.plain})
		answer, err := Client(tr, 0).Get(tt.url)
		if err == nil {
			answer.Body.Close()
		}
		if (tt.refused == "") != (err == nil) || err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		tr.CloseIdleConnections()
	}
}

type closes struct {
	io.Reader
	closed bool
}

func (c *closes) Close() error { c.closed = true; return nil }
