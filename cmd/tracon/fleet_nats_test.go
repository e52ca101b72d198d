package main

import (
	"encoding/json"
	"io"
	"os"

	"github.com/tracon-go/tracon/internal/broker"
)

// serveNATS is a NATS server of a cluster, as its configuration in JSON says, until its
// standard input ends. It prints its addresses.
func serveNATS(words []string) error {
	var c broker.Config
	if err := json.Unmarshal([]byte(words[0]), &c); err != nil {
		return err
	}
	s, err := broker.Start(c)
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
