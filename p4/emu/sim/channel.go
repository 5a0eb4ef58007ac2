package sim

import (
	"math/rand/v2"
	"time"
)

// Channel is the channel between a controller and devices. The controller sends one request after the other; those to one
// device, and its answers, keep their order. Requests and answers may be lost.
type Channel struct {
	Gap, Delay, Jitter int64   // ns: between two requests, on either way, and the upper bound of the random part of that
	Loss               float64 // probability with which a request is lost, or an answer
	Rand               *rand.Rand
	Events             *Events
	Timer              func(call int) int32 // makes the timer of a call, whose events go to [Channel.Event]

	Requests, RequestsLost, Answers, AnswersLost uint64

	calls []call
	spare []int32
	idle  int64 // when the controller can send the next request
}

// call is a request that is under way, or its answer.
type call struct {
	timer int32
	done  bool // by the device
	*Called
	serve  func() bool            // the work of the device; false: none answers
	answer func(at time.Duration) // the work of the controller
}

// Called is when the last request came to a device, and when its last answer comes.
type Called struct{ reached, answered int64 }

// Call sends a request to a device, unless it gets lost. A nil device is none. The function serve is the work of the
// device, and returns false where none answers. The function answer is the work of the controller with the answer.
func (c *Channel) Call(now int64, to *Called, serve func() bool, answer func(at time.Duration)) {
	c.Requests++
	if to == nil { // none is there to answer
		c.RequestsLost++
		return
	}
	leaves := max(now, c.idle)
	c.idle = leaves + c.Gap
	at := max(leaves+c.delay(), to.reached)
	if c.lose() {
		c.RequestsLost++
		return
	}
	to.reached = at
	i := int32(len(c.calls))
	if k := len(c.spare); k > 0 {
		i, c.spare = c.spare[k-1], c.spare[:k-1]
	} else {
		c.calls = append(c.calls, call{timer: c.Timer(int(i))})
	}
	c.calls[i] = call{timer: c.calls[i].timer, Called: to, serve: serve, answer: answer}
	c.Events.Add(at, c.calls[i].timer)
}

func (c *Channel) lose() bool { return c.Loss > 0 && c.Rand.Float64() < c.Loss }

func (c *Channel) delay() int64 {
	if c.Jitter > 0 {
		return c.Delay + c.Rand.Int64N(c.Jitter+1)
	}
	return c.Delay
}

// Event happens when a request reaches its device, and when the answer reaches the controller.
func (c *Channel) Event(now int64, i int) {
	x := &c.calls[i]
	free := func() {
		*x = call{timer: x.timer}
		c.spare = append(c.spare, int32(i))
	}
	if x.done {
		c.Answers++
		answer := x.answer
		free()
		answer(time.Duration(now))
		return
	}
	x.done = true
	switch {
	case !x.serve():
		c.RequestsLost++
		free()
	case c.lose():
		c.AnswersLost++
		free()
	default:
		x.answered = max(now+c.delay(), x.answered)
		c.Events.Add(x.answered, x.timer)
	}
}
