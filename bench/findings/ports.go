package findings

import (
	"math"
	"math/rand/v2"
)

// Times of a port in ns.
const (
	portBase    = 800.0  // through the switch, without a wait
	portService = 1200.0 // to send a packet
)

// port is a port at a mean load. Packets find it free with a probability of one less the load, and otherwise wait.
// Its load is nearly fractional Gaussian noise, of Hurst parameter .85 and of coefficient of variation cv. It is the
// sum of processes whose rates of forgetting are a factor of four apart.
type port struct {
	r         *rand.Rand
	load, cv  float64
	processes [6]float64
}

// portMemory and portWeight are the persistence and the share of the variance of the processes.
var portMemory, portWeight = func() (memory, weight [6]float64) {
	sum := 0.0
	for k := range memory {
		tau := math.Pow(4, float64(k))
		memory[k], weight[k] = math.Exp(-1/tau), math.Pow(tau, 2*.85-2)
		sum += weight[k]
	}
	for k := range weight {
		weight[k] = math.Sqrt(weight[k] / sum)
	}
	return memory, weight
}()

func newPort(r *rand.Rand, load, cv float64) *port {
	p := &port{r: r, load: load, cv: cv}
	for k := range p.processes {
		p.processes[k] = r.NormFloat64()
	}
	return p
}

// next returns the load of the next window, times a factor.
func (p *port) next(factor float64) float64 {
	g := 0.0
	for k := range p.processes {
		m := portMemory[k]
		p.processes[k] = m*p.processes[k] + math.Sqrt(1-m*m)*p.r.NormFloat64()
		g += portWeight[k] * p.processes[k]
	}
	return min(max(p.load*factor*(1+p.cv*g), .01), .98)
}

// portTime is the time through a port at a load, by its probability: an atom at no wait, and an exponential wait.
func portTime(load, u float64) float64 {
	if u <= 1-load {
		return portBase + portService
	}
	return portBase + portService + portService/(1-load)*math.Log(load/(1-u))
}
