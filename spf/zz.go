package spf
func (t *Table) Count() (a,b int) { for i:=range t.from { if t.from[i].Load()!=nil {a++}; if t.to[i].Load()!=nil {b++} }; return }
