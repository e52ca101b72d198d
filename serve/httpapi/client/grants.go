package client

import (
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// A Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"cursor of the next part; none: this is the last one"`
}

// A Ref names what a grant is for: one script, or all scripts of a skill.
type Ref struct {
	Tenant     string `json:"tenant" doc:"the credential's"`
	Skill      string `json:"skill"`
	Script     string `json:"script,omitempty"`
	AllScripts bool   `json:"allScripts,omitempty"`
}

// A Grant lets a tenant run what Ref names while its content has the digest Pin.
type Grant struct {
	ID        string        `json:"id"`
	Ref       Ref           `json:"ref"`
	Pin       bundle.Digest `json:"pin" doc:"digest of the content that was granted"`
	Reason    string        `json:"reason,omitempty"`
	Source    string        `json:"source,omitempty" doc:"where the content came from, for information"`
	GrantedBy string        `json:"grantedBy"`
	Granted   time.Time     `json:"granted"`
	Expires   time.Time     `json:"expires,omitzero" required:"false"`
	Revoked   time.Time     `json:"revoked,omitzero" required:"false"`
	RevokedBy string        `json:"revokedBy,omitempty"`
	MinTier   string        `json:"minTier" enum:"process,sandbox,kernel,vm"`
	State     string        `json:"state" enum:"in force,replaced,revoked,expired,invalid" doc:"when this was answered; replaced: a newer one decides"`
}

// A NewGrant says what is to be granted.
type NewGrant struct {
	Skill      string        `json:"skill" minLength:"1" maxLength:"512"`
	Script     string        `json:"script,omitempty" maxLength:"512" doc:"one script; or say allScripts"`
	AllScripts bool          `json:"allScripts,omitempty"`
	Digest     bundle.Digest `json:"digest" doc:"of the content that was reviewed; when it has changed since, nothing is granted, and the new one is not told"`
	MinTier    string        `json:"minTier,omitempty" enum:"process,sandbox,kernel,vm" doc:"least tier that may run it; none: the tier in force"`
	Reason     string        `json:"reason,omitempty" maxLength:"4096"`
	Source     string        `json:"source,omitempty" maxLength:"4096"`
	Expires    time.Time     `json:"expires,omitzero" required:"false" doc:"none: it does not expire"`
	Replace    bool          `json:"replace,omitempty" doc:"replace a grant in force that pins other content"`
}

// A Revocation says why a grant is taken back.
type Revocation struct {
	Reason string `json:"reason,omitempty" maxLength:"4096"`
}

// A File is one file of a content.
type File struct {
	Path   string        `json:"path"`
	Size   int64         `json:"size"`
	Digest bundle.Digest `json:"digest" doc:"SHA-256 of its bytes"`
	Text   *string       `json:"text,omitempty" doc:"where it was asked for, and the file is text"`
	Data   []byte        `json:"data,omitempty" doc:"where it was asked for, and the file is not text"`
}

// A Change is one file that differs between two contents.
type Change struct {
	Path       string `json:"path"`
	Kind       string `json:"kind" enum:"added,removed,changed"`
	Difference string `json:"difference" doc:"unified; of files that are no text, a line that says so"`
}

// A Diagnostic says what is amiss with a skill, where, and what to do.
type Diagnostic struct {
	Severity string `json:"severity" enum:"error,warning,note"`
	Code     string `json:"code"`
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text"`
	Remedy   string `json:"remedy,omitempty"`
}

// A Review is what a reviewer reads before a grant.
type Review struct {
	Ref     Ref           `json:"ref"`
	Digest  bundle.Digest `json:"digest" doc:"of the content as it is now: what a grant of it names"`
	Files   []File        `json:"files" nullable:"false"`
	Granted *Grant        `json:"granted,omitempty" doc:"the newest grant that decides; none: never granted"`
	Changes []Change      `json:"changes" nullable:"false" doc:"since that grant"`
	Risks   []Diagnostic  `json:"risks" nullable:"false" doc:"signs of risk, for information"`
}

// A Difference is what has changed since a grant.
type Difference struct {
	Granted Grant    `json:"granted"`
	Changes []Change `json:"changes" nullable:"false"`
}
