package toolset

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/tracon-go/tracon/bundle"
)

// kept is the outputs that a next call may take as inputs, in memory. What a restart
// forgets, the script can write again.
type kept struct {
	max int64
	age time.Duration

	mu      sync.Mutex
	total   int64
	tenants map[string]*shelf
}

// shelf is one tenant's, the oldest first.
type shelf struct {
	bytes int64
	files []keptFile
}

type keptFile struct {
	handle string
	file   bundle.File
	until  time.Time
}

// cost is what a file counts, so that many empty ones are bounded too.
func (f keptFile) cost() int64 { return int64(len(f.file.Data)) + 512 }

func newKept(max int64, age time.Duration) *kept {
	return &kept{max: max, age: age, tenants: map[string]*shelf{}}
}

// add keeps the file and returns its handle, empty for one that is too large to be kept.
// Room is made by the tenant that holds the most.
func (k *kept) add(tenant string, file bundle.File) string {
	f := keptFile{handle: "out_" + rand.Text(), file: file, until: time.Now().Add(k.age)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep()
	if f.cost() > k.max {
		return ""
	}
	s := k.tenants[tenant]
	if s == nil {
		s = &shelf{}
		k.tenants[tenant] = s
	}
	s.files = append(s.files, f)
	s.bytes += f.cost()
	k.total += f.cost()
	for k.total > k.max {
		k.dropOldest(k.largest())
	}
	if k.tenants[tenant] == nil {
		return ""
	}
	return f.handle
}

// get returns the tenant's file of that handle.
func (k *kept) get(tenant, handle string) (bundle.File, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweep()
	s := k.tenants[tenant]
	if s == nil {
		return bundle.File{}, false
	}
	for _, f := range s.files {
		if f.handle == handle {
			return f.file, true
		}
	}
	return bundle.File{}, false
}

func (k *kept) largest() (tenant string) {
	var most int64 = -1
	for name, s := range k.tenants {
		if s.bytes > most {
			tenant, most = name, s.bytes
		}
	}
	return tenant
}

func (k *kept) dropOldest(tenant string) {
	s := k.tenants[tenant]
	cost := s.files[0].cost()
	s.files[0] = keptFile{} // its bytes are let go of
	s.files = s.files[1:]
	s.bytes -= cost
	k.total -= cost
	if len(s.files) == 0 {
		delete(k.tenants, tenant)
	}
}

// sweep forgets what is too old.
func (k *kept) sweep() {
	now := time.Now()
	for tenant, s := range k.tenants {
		for n := len(s.files); n > 0 && !now.Before(s.files[0].until); n-- {
			k.dropOldest(tenant)
		}
	}
}
