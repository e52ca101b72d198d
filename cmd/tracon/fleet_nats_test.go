package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/tracon-go/tracon/internal/broker"
)

// natsNode is one NATS server of a cluster.
type natsNode struct {
	Name   string
	Pool   broker.Pool
	Routes []string
}

// serveNATS is a server of a cluster, as the JSON of a natsNode says, until its standard
// input ends. It prints its addresses.
func serveNATS(words []string) error {
	var n natsNode
	if err := json.Unmarshal([]byte(words[0]), &n); err != nil {
		return err
	}
	s, err := broker.Start(broker.Config{Name: n.Name, Listen: "127.0.0.1:0", Pools: []broker.Pool{n.Pool},
		Cluster: broker.Cluster{Listen: "127.0.0.1:0", Routes: n.Routes, Secret: "a secret of the test alone"}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := json.NewEncoder(os.Stdout).Encode(natsAt{s.Address(), s.ClusterAddress()}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// natsAt is where such a server listens.
type natsAt struct{ Address, Cluster string }
