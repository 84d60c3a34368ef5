package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

func TestExportedNamesAreDocumented(t *testing.T) { check(t, "docs", documented) }

// documented wants a comment on each package and on each exported type, function, method, constant
// and variable. A comment on a group of constants or variables counts for all of them. That a
// comment begins with the name is checked by staticcheck (ST1020 to ST1022).
func documented(r *repository) []finding {
	var findings []finding
	packageDocs := map[string]bool{}
	first := map[string]source{}
	for _, s := range r.sources {
		if s.isTest() {
			continue
		}
		packageDocs[s.dir()] = packageDocs[s.dir()] || says(s.file.Doc)
		if _, ok := first[s.dir()]; !ok {
			first[s.dir()] = s
		}
		for _, decl := range s.file.Decls {
			for _, name := range undocumented(decl) {
				findings = append(findings, finding{s.name, s.line(name),
					name.Name + " is exported and has no comment",
					"say what it is for, its units, its errors, and the source it follows"})
			}
		}
	}
	for dir, s := range first {
		if !packageDocs[dir] {
			findings = append(findings, finding{s.name, s.line(s.file.Name),
				fmt.Sprintf("package %s has no comment", s.file.Name.Name),
				"say what lives in it, above its package clause"})
		}
	}
	return findings
}

func says(comments ...*ast.CommentGroup) bool {
	for _, c := range comments {
		if c != nil && c.Text() != "" {
			return true
		}
	}
	return false
}

func undocumented(decl ast.Decl) []*ast.Ident {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if !says(decl.Doc) && decl.Name.IsExported() &&
			(decl.Recv == nil || ast.IsExported(receiver(decl))) {
			return []*ast.Ident{decl.Name}
		}
	case *ast.GenDecl:
		if decl.Tok != token.IMPORT {
			return undocumentedSpecs(decl)
		}
	}
	return nil
}

func undocumentedSpecs(decl *ast.GenDecl) []*ast.Ident {
	var names []*ast.Ident
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !says(decl.Doc, spec.Doc) && spec.Name.IsExported() {
				names = append(names, spec.Name)
			}
			if methods, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
				names = append(names, undocumentedMethods(methods)...)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if !says(decl.Doc, spec.Doc, spec.Comment) && name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func undocumentedMethods(methods *ast.InterfaceType) []*ast.Ident {
	var names []*ast.Ident
	for _, method := range methods.Methods.List {
		for _, name := range method.Names {
			if !says(method.Doc, method.Comment) && name.IsExported() {
				names = append(names, name)
			}
		}
	}
	return names
}

// receiver is the name of the type that a method belongs to.
func receiver(method *ast.FuncDecl) string {
	expr := method.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
