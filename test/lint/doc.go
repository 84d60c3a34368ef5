// Package lint holds the rules of the house, as tests over the repository: who may import whom, how
// long a file and a function may be, that exported names are documented and used, and that nothing
// is left unfinished.
//
// A rule is a function from the repository to its findings; a finding says where, what, and the
// mend. Each rule runs twice: over this repository, where it must find nothing, and over a small
// bad one in testdata, where it must find what want.txt there says. After a change of a rule, go
// test ./test/lint -update writes these files anew, and the review is their diff.
//
// The package consists of tests alone and is part of no binary.
package lint
