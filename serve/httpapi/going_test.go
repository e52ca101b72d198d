package httpapi

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tracon-go/tracon/serve/httpapi/client"
)

// untaken is an answer that its client does not take until taken is closed.
type untaken struct {
	*httptest.ResponseRecorder
	began chan<- struct{}
	taken <-chan struct{}
	once  sync.Once
}

func (u *untaken) Write(b []byte) (int, error) {
	u.once.Do(func() { u.began <- struct{}{} })
	<-u.taken
	return u.ResponseRecorder.Write(b)
}

// B10: what has a skill's contents is held in memory until it was taken, so one tenant
// has few of them at once, whichever way it asks; what is small goes on, and another
// tenant feels nothing.
func TestAnswersThatNobodyTakes(t *testing.T) {
	for _, tt := range []struct{ name, path string }{
		{"a skill", "/v1/skills/greeter?content=true"},
		{"a file", "/v1/skills/greeter/file?path=scripts/hello.py"},
		{"an archive", "/v1/skills/greeter/export"},
		{"a review", "/v1/review?skill=greeter&script=scripts/hello.py&content=true"},
		{"a difference", "/v1/difference?skill=greeter&script=scripts/hello.py"},
		{"two versions", "/v1/skills/greeter/diff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t)
			h.grant("acme")
			line := strings.Repeat("#", 1000) + "\n"
			for _, tenant := range []string{"acme", "globex"} {
				h.importSkill(tenant, strings.Repeat(line, 400))
			}
			began, taken := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			var answers []*untaken
			for range uploadsPerTenant {
				u := &untaken{ResponseRecorder: httptest.NewRecorder(), began: began, taken: taken}
				answers = append(answers, u)
				r := httptest.NewRequestWithContext(t.Context(), "GET", tt.path, nil)
				r.Header.Set("Authorization", "Bearer approver")
				all.Go(func() { h.handler.ServeHTTP(u, r) })
				<-began
			}
			h.ask("approver", "GET", tt.path, nil).problem(client.Busy)
			h.ask("approver", "GET", "/v1/skills/greeter", nil).into(200, nil)
			h.ask("other", "GET", "/v1/skills/greeter/export", nil).into(200, nil)
			close(taken)
			all.Wait()
			for _, u := range answers {
				if u.Code != 200 || u.Body.Len() == 0 {
					t.Errorf("%d, %d bytes", u.Code, u.Body.Len())
				}
			}
			h.ask("approver", "GET", tt.path, nil).into(200, nil)
			if u := &h.inside.uploads; len(u.tenant) != 0 || u.all != 0 {
				t.Errorf("left: %v, %d", u.tenant, u.all)
			}
		})
	}
}
