// Package kernel is on floor 2, where the world is.
package kernel

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

func open(name string) error {
	log.Print(time.Now())
	if _, err := http.Get(name); err != nil {
		return fmt.Errorf("getting %s: %v", name, err)
	}
	client := http.Client{Timeout: time.Second}
	if _, err := client.Get(name); err != nil {
		return fmt.Errorf("getting %s: %w", name, err)
	}
	<-context.TODO().Done()
	os.Exit(1)
	return fmt.Errorf("%s is closed", name)
}
