package papers
import ("testing";"math/rand/v2";"github.com/hopscope/hopscope/planner/attention")
func BenchmarkZZ(b *testing.B){
 for _,x:=range []struct{f string;n int;h bool; pc int}{{"leaf-spine",375,false,10},{"leaf-spine",125,true,10},{"leaf-spine",125,true,3},{"fat-tree",30,true,10}} {
 in,err:=newCycles(x.f,x.n,x.h,1); if err!=nil {b.Fatal(err)}
 var sets [][]int32
 rng:=rand.New(rand.NewPCG(1,2))
 for range 20 { p:=rng.Perm(in.links)[:in.links*x.pc/100]; var s []int32; for _,v:=range p {s=append(s,int32(v))}; sets=append(sets,s)}
 b.Run(in.name, func(b *testing.B){ i:=0; nodes:=0; for b.Loop(){ c,_:=in.index.Switch(sets[i%20],nil,attention.Options{}); i++; nodes+=c.Nodes }; b.ReportMetric(float64(nodes)/float64(i),"nodes") })
 }
}
