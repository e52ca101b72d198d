package client

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// A Code says what kind of problem it is, for programs. The set is closed; see [Codes].
type Code string

// The codes, by the status that each has.
const (
	BadRequest           Code = "bad_request"            // 400: it cannot be read; see the detail
	BadCursor            Code = "bad_cursor"             // 400: the cursor is of another list, or none
	Unauthenticated      Code = "unauthenticated"        // 401: no credential, or none that holds
	Forbidden            Code = "forbidden"              // 403: whoever it is may not do this
	CrossOrigin          Code = "cross_origin"           // 403: a browser sent it for another site
	NotFound             Code = "not_found"              // 404: there is none, or it is somebody else's
	MethodNotAllowed     Code = "method_not_allowed"     // 405
	NotAcceptable        Code = "not_acceptable"         // 406
	Timeout              Code = "timeout"                // 408: the body came too slowly
	Conflict             Code = "conflict"               // 409: another change came first; look again
	ContentChanged       Code = "content_changed"        // 409: the content is not the one that was reviewed; review it again
	ContentPinned        Code = "content_pinned"         // 409: a grant in force pins other content; say replace
	Fixed                Code = "fixed_by_configuration" // 409: the host's configuration file says it
	TenantDeleted        Code = "tenant_deleted"         // 409: the tenant was deleted, and its name is not given again
	RunsUnderWay         Code = "runs_under_way"         // 409: runs of the tenant are under way; switch it off, and wait for them
	QuotaExceeded        Code = "quota_exceeded"         // 409: no more of it is kept for the tenant
	InUse                Code = "in_use"                 // 409: something else needs it
	PreconditionFailed   Code = "precondition_failed"    // 412: it is no longer what If-Match says
	TooLarge             Code = "too_large"              // 413
	UnsupportedMediaType Code = "unsupported_media_type" // 415
	Invalid              Code = "invalid"                // 422: it was read, and cannot be
	BadContent           Code = "bad_content"            // 422: the skill's content is refused; the detail says why
	PreconditionRequired Code = "precondition_required"  // 428: a change takes If-Match
	Busy                 Code = "busy"                   // 429: too much is under way; Retry-After says when
	RateLimited          Code = "rate_limited"           // 429: too many requests; Retry-After says when
	Internal             Code = "internal"               // 500: the operator's log tells more, by the request id
	NotOffered           Code = "not_offered"            // 501: this host does not do it
	Unavailable          Code = "unavailable"            // 503: what is kept cannot be reached
	AuditUnavailable     Code = "audit_unavailable"      // 503: the log cannot be written, so nothing was done

	// Of a run that a gate refused: the gate's name. Nothing was run.
	RefusedSwitch      Code = "switch"      // 403: scripts are switched off
	RefusedName        Code = "name"        // 404: there is no such skill or script
	RefusedGrant       Code = "grant"       // 403: no grant is in force
	RefusedContent     Code = "content"     // 403: the skill's files cannot be used as they are
	RefusedPin         Code = "pin"         // 403: the skill has changed since it was granted
	RefusedInterpreter Code = "interpreter" // 403: scripts of this kind are not on the allow-list
	RefusedTier        Code = "tier"        // 403: the host cannot isolate it as strongly as the grant asks
	RefusedArguments   Code = "arguments"   // 422: the detail says what does not fit

	ExecutorUnavailable Code = "executor_unavailable" // 503: the script could not be started, and did not run
	Cancelled           Code = "cancelled"            // 503: the run was given up before it was admitted
	KeyReused           Code = "key_reused"           // 422: the Idempotency-Key stands for another call
)

// statuses are the codes and their status.
var statuses = map[Code]int{
	BadRequest: 400, BadCursor: 400, Unauthenticated: 401, Forbidden: 403, CrossOrigin: 403, NotFound: 404,
	MethodNotAllowed: 405, NotAcceptable: 406, Timeout: 408, Conflict: 409, ContentChanged: 409, ContentPinned: 409,
	Fixed: 409, InUse: 409, TenantDeleted: 409, RunsUnderWay: 409, QuotaExceeded: 409, PreconditionFailed: 412, TooLarge: 413, UnsupportedMediaType: 415, Invalid: 422, BadContent: 422,
	PreconditionRequired: 428, Busy: 429, RateLimited: 429, Internal: 500, NotOffered: 501, Unavailable: 503, AuditUnavailable: 503,
	RefusedSwitch: 403, RefusedName: 404, RefusedGrant: 403, RefusedContent: 403, RefusedPin: 403, RefusedInterpreter: 403,
	RefusedTier: 403, RefusedArguments: 422, ExecutorUnavailable: 503, Cancelled: 503, KeyReused: 422,
}

// Codes returns every code, in the order of the alphabet.
func Codes() []Code { return slices.Sorted(maps.Keys(statuses)) }

// Status returns the HTTP status of the code, and 500 for one that is none.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 500
}

// A Problem is what the server says of a request that it did not carry out (RFC 9457).
type Problem struct {
	Type      string  `json:"type" doc:"urn:tracon:problem: and the code"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Code      Code    `json:"code" doc:"what kind of problem it is, for programs"`
	Detail    string  `json:"detail,omitempty" doc:"for people"`
	RequestID string  `json:"requestId,omitempty" doc:"by which the operator finds it in the log"`
	Run       string  `json:"run,omitempty" doc:"id of the call that this is about"`
	Reason    string  `json:"reason,omitempty" doc:"why a gate refused, for who may read the log"`
	Remedy    string  `json:"remedy,omitempty" doc:"what the operator can do about it, for who may read the log"`
	Errors    []Wrong `json:"errors,omitempty" nullable:"false"`

	// RetryAfter is when to try again, where the server says it.
	RetryAfter time.Duration `json:"-"`
}

// NewProblem makes a problem of the code, with a detail for people.
func NewProblem(code Code, detail string) *Problem {
	status := code.Status()
	return &Problem{Type: "urn:tracon:problem:" + string(code), Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// A Wrong is one thing that is wrong with a request.
type Wrong struct {
	Location string `json:"location,omitempty" doc:"such as body.skill or query.limit"`
	Message  string `json:"message"`
}

// Error returns the detail, with what is wrong.
func (p *Problem) Error() string {
	s := p.Title
	if p.Detail != "" {
		s = p.Detail
	}
	for _, w := range p.Errors {
		if w.Location != "" {
			s += fmt.Sprintf("; %s: %s", w.Location, w.Message)
		} else {
			s += "; " + w.Message
		}
	}
	return s
}

// Is reports whether target is a [Code] that is p's, so that errors.Is(err, client.NotFound) works.
func (p *Problem) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == p.Code
}

// Error makes a Code something that errors.Is compares with.
func (c Code) Error() string { return string(c) }

// GetStatus returns the HTTP status; the server's library asks for it.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns that of problem details; the server's library asks for it.
func (p *Problem) ContentType(string) string { return "application/problem+json" }
