package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// granted are the rights that the roles of an account give it, as verb group/resource.
func (w *world) granted(account string) map[string]bool {
	w.t.Helper()
	var cluster rbacv1.ClusterRoleList
	var own rbacv1.RoleList
	must(w.t, w.client.List(w.t.Context(), &cluster))
	must(w.t, w.client.List(w.t.Context(), &own))
	var rules []rbacv1.PolicyRule
	for _, r := range cluster.Items {
		if r.Name == account {
			rules = append(rules, r.Rules...)
		}
	}
	for _, r := range own.Items {
		if r.Name == account && r.Namespace == namespace {
			rules = append(rules, r.Rules...)
		}
	}
	rights := map[string]bool{}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					rights[fmt.Sprintf("%s %s/%s", verb, group, resource)] = true
				}
			}
		}
	}
	return rights
}

// testRights compares the rights of our accounts with what they have done so far: each right was
// used, and nothing else was asked for. The API server that lists as a watch begins spares lists,
// which others need.
func (w *world) testRights() {
	used := map[string]map[string]bool{}
	for _, r := range w.cluster.Requests() {
		account := r.User[strings.LastIndexByte(r.User, ':')+1:]
		if used[account] == nil {
			used[account] = map[string]bool{}
		}
		if r.Resource == "" {
			continue // which kinds there are, every user may ask
		}
		right := fmt.Sprintf("%s %s/%s", r.Verb, r.Group, r.Resource)
		used[account][right] = true
		if r.Code == 403 {
			w.t.Errorf("%s may not %s", account, right)
		}
	}
	for _, account := range []string{"sextant-controller", "sextant-node"} {
		rights := w.granted(account)
		w.t.Logf("%s has %d rights", account, len(rights))
		for _, right := range slices.Sorted(maps.Keys(rights)) {
			of, isList := strings.CutPrefix(right, "list ")
			spared := isList && used[account]["watch "+of]
			if !used[account][right] && !spared {
				w.t.Errorf("%s may %s, and never did", account, right)
			}
		}
		if len(rights) == 0 {
			w.t.Errorf("%s has no rights", account)
		}
	}
}
