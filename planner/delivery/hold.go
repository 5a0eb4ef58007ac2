package delivery

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
)

// Hold compares the claims of a plan with another plan of the same problem, which was optimised as far as possible and
// has proven bounds. It sets Proof, or returns an error if the other plan contradicts the claims. A bound of links
// applies to plans that leave out no more. A bound of servers applies to those that also add no more links.
func (s *Stats) Hold(other *Stats) error {
	below := func(a, b float64) bool { return a < b && !planner.Near(a, b) }
	noMoreOut, noLessOut := !below(s.LeftOut, other.LeftOut), !below(other.LeftOut, s.LeftOut)
	switch {
	case below(other.LeftOut, s.LeftOutBound):
		return fmt.Errorf("the plan says that points of weight %v must be left out, but %v is enough", s.LeftOutBound, other.LeftOut)
	case noMoreOut && other.Links < s.LinkBound:
		return fmt.Errorf("the plan says that at least %d links must be added, but %d are enough", s.LinkBound, other.Links)
	case noMoreOut && other.Links <= s.Links && below(other.Objective, s.LowerBound):
		return fmt.Errorf("the plan says that no objective is below %v, but there is a plan with %v", s.LowerBound, other.Objective)
	case s.Optimal && !noLessOut:
		return fmt.Errorf("the plan is called optimal and leaves out points of weight %v, but %v is enough", s.LeftOut, other.LeftOut)
	case s.Optimal && noMoreOut && other.Links < s.Links:
		return fmt.Errorf("the plan is called optimal and adds %d links, but %d are enough", s.Links, other.Links)
	}
	s.Proof = planner.Claimed
	proven := !below(other.LeftOutBound, s.LeftOutBound) &&
		(s.LinkBound == 0 || noLessOut && other.LinkBound >= s.LinkBound) &&
		(s.LowerBound == 0 || noLessOut && other.Links >= s.Links && !below(other.LowerBound, s.LowerBound))
	if proven {
		s.Proof = planner.Verified
	}
	return nil
}
