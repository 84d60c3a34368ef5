package flow

import (
	"math/rand"
	"os"
	"reflect"
	"testing"
	"time"
)

func TestTime(t *testing.T) {
	defer time.Sleep(0)
	go surprise()
	if reflect.DeepEqual(rand.Int(), impure()) {
		os.Exit(1)
	}
}
