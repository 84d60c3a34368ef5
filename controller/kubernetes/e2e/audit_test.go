package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A Request is one that a user made of the API server.
type Request struct {
	User, Verb, Group, Resource string // Resource with its subresource; "": none
	Code                        int32  // of the answer
}

// event is what is used here of audit.k8s.io/v1, kind Event.
type event struct {
	User           struct{ Username string }
	Verb           string
	ObjectRef      struct{ Resource, APIGroup, Subresource string }
	ResponseStatus struct{ Code int32 }
}

// auditOf has the API server write down what users ask for, but not the administrator.
func auditOf(users Users) string {
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n"
	if len(users) > 0 {
		names, err := json.Marshal(slices.Sorted(maps.Values(users)))
		if err != nil {
			panic(err) // of strings alone
		}
		text += fmt.Sprintf("- {level: Metadata, users: %s}\n", names)
	}
	return text + "- {level: None}\n"
}

func (c *Cluster) audit() string { return filepath.Join(c.Dir, "audit.log") }

// Requests are those that users made until now, but not the administrator.
func (c *Cluster) Requests() (list []Request) {
	c.t.Helper()
	text, err := os.ReadFile(c.audit())
	must(c.t, err)
	for line := range bytes.Lines(text) {
		var e event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		must(c.t, json.Unmarshal(line, &e))
		r := Request{User: e.User.Username, Verb: e.Verb, Group: e.ObjectRef.APIGroup,
			Resource: e.ObjectRef.Resource, Code: e.ResponseStatus.Code}
		if e.ObjectRef.Subresource != "" {
			r.Resource += "/" + e.ObjectRef.Subresource
		}
		list = append(list, r)
	}
	return list
}
