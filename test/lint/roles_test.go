package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestRolesAreNamedInTheirRooms(t *testing.T) { check(t, "roles", rolesInRooms) }

// rolesKnown is of how many roles a file may name the types: its own, and another one that it works
// with. A file that names more is a list of roles beside the registry.
const rolesKnown = 2

// roleNames are the words for one role: the types of its room and of the role that runs.
type roleNames struct{ room, kind string }

// rolesInRooms finds files that name more roles than their own. The registry is the function kinds,
// with one call of kindOf for each role, which gets what opens the role's room: its file may name
// all.
func rolesInRooms(r *repository) []finding {
	var findings []finding
	for _, registry := range r.sources {
		list := registered(registry.file)
		if len(list) == 0 || registry.isTest() {
			continue
		}
		for _, s := range r.sources {
			if s.isTest() || s.name == registry.name || s.dir() != path.Dir(registry.name) {
				continue
			}
			if named, at := rolesNamed(s.file, list); len(named) > rolesKnown {
				findings = append(findings, finding{s.name, s.line(at),
					fmt.Sprintf("roles %s are named outside their rooms",
						strings.Join(named, ", ")),
					"loop over the rooms, with a method of theirs or a hook"})
			}
		}
	}
	return findings
}

// registered reads the registry, nil if the file has none.
func registered(file *ast.File) (list []roleNames) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "kinds" || f.Recv != nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			name, isName := call.Fun.(*ast.Ident)
			open, isOpen := call.Args[1].(*ast.Ident)
			if isName && isOpen && name.Name == "kindOf" {
				list = append(list, namesOf(open.Name))
			}
			return true
		})
	}
	return list
}

// namesOf are the names of a role whose room is made by newXRoom: xRoom and xRole.
func namesOf(open string) roleNames {
	room := strings.TrimPrefix(open, "new")
	room = strings.ToLower(room[:1]) + room[1:]
	return roleNames{room, strings.TrimSuffix(room, "Room") + "Role"}
}

// rolesNamed lists the roles that a file names, and where it names the first one too many.
func rolesNamed(file *ast.File, list []roleNames) (named []string, at ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		id, isName := n.(*ast.Ident)
		if !isName {
			return true
		}
		i := slices.IndexFunc(list, func(r roleNames) bool {
			return r.kind == id.Name || r.room == id.Name
		})
		if i >= 0 && !slices.Contains(named, list[i].kind) {
			if named = append(named, list[i].kind); len(named) == rolesKnown+1 {
				at = n
			}
		}
		return true
	})
	return named, at
}
