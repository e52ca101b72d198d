package memstore_test

import (
	"testing"

	"github.com/tracon-go/tracon/store"
	"github.com/tracon-go/tracon/store/memstore"
	"github.com/tracon-go/tracon/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Setup{Open: func(testing.TB) store.Store { return memstore.New() }})
}
