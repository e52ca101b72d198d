package broker_test

import (
	"testing"

	"github.com/tracon-go/tracon/executor/fleet"
	"github.com/tracon-go/tracon/internal/broker"
)

// What must not be is refused before anything listens.
func TestRefuses(t *testing.T) {
	_, key, err := fleet.NewSeed()
	if err != nil {
		t.Fatal(err)
	}
	pools := []broker.Pool{{Name: "a", Members: []broker.Member{{Name: "r", Key: key}}}}
	for _, c := range []struct {
		name string
		c    broker.Config
	}{
		{"the zero Config", broker.Config{}},
		{"no pool", broker.Config{Name: "x", Listen: "127.0.0.1:0"}},
		{"plain text for other machines", broker.Config{Name: "x", Listen: "0.0.0.0:0", Pools: pools}},
		{"a pool twice", broker.Config{Name: "x", Listen: "127.0.0.1:0", Pools: append(pools, broker.Pool{Name: "a"})}},
		{"a key in two pools", broker.Config{Name: "x", Listen: "127.0.0.1:0", Pools: append(pools, broker.Pool{Name: "b", Members: pools[0].Members})}},
		{"a key that is none", broker.Config{Name: "x", Listen: "127.0.0.1:0", Pools: []broker.Pool{{Name: "a", Members: []broker.Member{{Name: "r", Key: "U"}}}}}},
		{"a cluster in plain text", broker.Config{Name: "x", Listen: "127.0.0.1:0", Pools: pools, Cluster: broker.Cluster{Listen: "0.0.0.0:0", Secret: "0123456789abcdef"}}},
		{"a cluster without a secret", broker.Config{Name: "x", Listen: "127.0.0.1:0", Pools: pools, Cluster: broker.Cluster{Listen: "127.0.0.1:0"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s, err := broker.Start(c.c); err == nil {
				s.Close()
				t.Error("it was started")
			}
		})
	}
}
