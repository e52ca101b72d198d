package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// raw sends bytes over a connection of its own and returns the statuses of all that is
// answered until the server closes it.
func (s *served) raw(request string) (statuses []int) {
	t := s.t
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // it may be answered before all is read
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if statuses = append(statuses, res.StatusCode); res.Close {
			return statuses
		}
	}
}

// W07: a request that a proxy may have read in another way is refused or ends its
// connection, so that none can hide behind it: what follows it is never answered.
func TestServeSmuggling(t *testing.T) {
	s := newServed(t, nil).start()
	c := s.setUp("acme", "echo fine\n")
	key := s.key("acme", "ci", "operator")
	from := "Host: 127.0.0.1\r\nAuthorization: Bearer " + key + "\r\nContent-Type: application/json\r\n"
	hidden := "GET /v1/whoami HTTP/1.1\r\n" + from + "Connection: close\r\n\r\n"
	if got := s.raw("GET /v1/whoami HTTP/1.1\r\n" + from + "\r\n" + hidden); !slices.Equal(got, []int{200, 200}) {
		t.Fatalf("two requests in a row: %v", got) // else nothing is shown below
	}
	body := `{"skill":"s","script":"s.sh"}`
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for _, path := range []string{"/v1/runs", "/mcp", "/metrics", "/nothing"} {
		for _, tt := range []struct{ name, head, body string }{
			{"two lengths", length + "Content-Length: 5\r\n", body},
			{"two lengths in one", "Content-Length: 29, 5\r\n", body},
			{"a length with a sign", "Content-Length: +29\r\n", body},
			{"a length in hex", "Content-Length: 0x1d\r\n", body},
			{"a length below zero", "Content-Length: -1\r\n", body},
			{"a length that is another's too", strings.Replace(length, "Length:", "Length :", 1), body},
			{"a length and chunks", length + "Transfer-Encoding: chunked\r\n", chunked},
			{"chunks and a length", "Transfer-Encoding: chunked\r\n" + length, chunked},
			{"chunks twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked},
			{"chunks and more", "Transfer-Encoding: chunked, identity\r\n", chunked},
			{"chunks behind a tab", "Transfer-Encoding:\vchunked\r\n", chunked},
			{"odd chunks", "Transfer-Encoding: xchunked\r\n", chunked},
			{"a name that folds", "Transfer-Encoding: chunked\r\n\t, identity\r\n", chunked},
			{"a size of chunks with a sign", "Transfer-Encoding: chunked\r\n", "+1d\r\n" + body + "\r\n0\r\n\r\n"},
			{"chunks that end too late", "Transfer-Encoding: chunked\r\n", "1d\r\n" + body + "x\r\n0\r\n\r\n"},
			{"a bare line end in a header", "X-A: b\rTransfer-Encoding: chunked\r\n" + length, body},
			{"a NUL in a header", "X-A: b\x00c\r\n" + length, body},
			{"two hosts", "Host: other\r\n" + length, body},
		} {
			t.Run(path+" "+tt.name, func(t *testing.T) {
				got := s.raw("POST " + path + " HTTP/1.1\r\n" + from + tt.head + "\r\n" + tt.body + hidden)
				if len(got) != 1 {
					t.Errorf("answered %v, want one answer and the end", got)
				}
			})
		}
	}
	list, err := c.Calls(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Errorf("%d ran, want the two that are read in one way by the standard", len(list))
	}
	if run, err := c.StartRun(t.Context(), client.NewRun{Skill: "s", Script: "s.sh", Arguments: json.RawMessage("[]")}, client.RunOptions{}); err != nil || run.ExitCode == nil || *run.ExitCode != 0 {
		t.Errorf("beside it: %+v, %v", run, err)
	}
}

// W08: a path and a method have one spelling, and no other leads to what stands there,
// with a key or without: what is not there asks nobody for one.
func TestServeSpellings(t *testing.T) {
	s := newServed(t, nil).start()
	s.setUp("acme", "echo fine\n")
	key := s.key("acme", "ci", "admin")
	for _, tt := range []struct {
		name, line, header string
		with, without      int
	}{
		{"as it is", "GET /v1/grants", "", 200, 401},
		{"no body", "HEAD /v1/grants", "", 200, 401},
		{"two slashes", "GET //v1/grants", "", 404, 404},
		{"two slashes within", "GET /v1//grants", "", 404, 404},
		{"an encoded slash", "GET /v1%2fgrants", "", 404, 404},
		{"an encoded slash, twice", "GET /v1%252fgrants", "", 404, 404},
		{"a step up", "GET /healthz/../v1/grants", "", 404, 404},
		{"an encoded step up", "GET /healthz/..%2fv1/grants", "", 404, 404},
		{"encoded points", "GET /healthz/%2e%2e/v1/grants", "", 404, 404},
		{"a backslash", "GET /healthz/..\\v1\\grants", "", 404, 404},
		{"a point at the end", "GET /v1/grants.", "", 404, 404},
		{"a slash at the end", "GET /v1/grants/", "", 404, 404},
		{"a parameter in the path", "GET /v1/grants;x=1", "", 404, 404},
		{"another case", "GET /V1/Grants", "", 404, 404},
		{"an encoded letter", "GET /v1/gr%61nts", "", 200, 401},
		{"a NUL", "GET /v1/grants%00", "", 404, 404},
		{"health as another's folder", "GET /healthz/grants", "", 404, 404},
		{"metrics spelled otherwise", "GET //metrics", "", 404, 404},
		{"metrics of a tenant", "GET /metrics", "", 403, 401},
		{"the endpoint for models spelled otherwise", "GET /mcp/../metrics", "", 404, 404},
		{"a whole address", "GET http://127.0.0.1/v1/grants", "", 200, 401},
		{"a method in a header", "GET /v1/policy", "X-HTTP-Method-Override: PATCH\r\nX-Method-Override: DELETE\r\n", 200, 401},
		{"a path in a header", "GET /healthz", "X-Original-URL: /v1/grants\r\nX-Rewrite-URL: /v1/grants\r\n", 200, 200},
		{"options", "OPTIONS /v1/grants", "", 405, 405},
		{"options of all", "OPTIONS *", "", 404, 404},
		{"a method in small letters", "get /v1/grants", "", 405, 405},
		{"a method that is none", "GRANT /v1/grants", "", 405, 405},
		{"trace", "TRACE /v1/grants", "", 405, 405},
		{"connect", "CONNECT 127.0.0.1:80", "", 404, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + tt.header
			if got := s.one(tt.line, host+"Authorization: Bearer "+key+"\r\n\r\n"); got != tt.with {
				t.Errorf("with a key: %d, want %d", got, tt.with)
			}
			if got := s.one(tt.line, host+"\r\n"); got != tt.without {
				t.Errorf("without a key: %d, want %d", got, tt.without)
			}
		})
	}
}

// one sends a request that closes its connection and returns the status, HEAD's too.
func (s *served) one(line, rest string) int {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Address, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, line+rest); err != nil {
		s.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodHead}) // no body is read
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode
}
