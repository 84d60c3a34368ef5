package segment
import ("testing";"fmt";"time";"math/rand/v2";"sextant/topology/dataset";"sextant/topology")
func TestZZ(t *testing.T){
 g,_:=dataset.Open("large/isp10000")
 rnd := rand.New(rand.NewPCG(1, 1))
 e,_:=New(g.All())
 var w Watch
 var as []Answer
 b:=time.Now()
 for i:=range 300 {
   a,_:=e.Disjoint(Query{From:topology.Node(97*(i%100)),To:topology.Node(rnd.IntN(g.Nodes()-1)),Paths:2})
   as=append(as,a); w.Add(i,e,a)
 }
 fmt.Println("setup",time.Since(b))
 for i:=range 12 {
 lens,dist:=e.latency.Count(); l2,d2:=e.igp.Count()
 fmt.Println("rows latency from/to",lens,dist,"igp",l2,d2)
 a:=as[rnd.IntN(len(as))]
 f:=e.LinkDown(a.Paths[0].Edges[len(a.Paths[0].Edges)/2])
 b:=time.Now()
 u,_:=e.Apply(f...)
 d:=time.Since(b); b=time.Now()
 aff:=w.Affected(u)
 d3:=time.Since(b); b=time.Now()
 for _,p:=range aff {e.Disjoint(as[p].Query)}
 fmt.Println(i,"apply",d,"affected",len(aff),d3,"recompute",time.Since(b), "effects", len(u.Rows))
 b=time.Now()
 e.Apply(e.Restored(f)...)
 fmt.Println("restore",time.Since(b))
 }
}
