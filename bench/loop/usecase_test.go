package loop

import "testing"

// Section 6.4.1 of FANT: the use of the lines that the flow is moved to rises in the cycle of the move, by any
// measurement. Counts of segment routing and of IPv4 rise with it where all probes are detailed, and where flows
// carry INT themselves. FANT has them one cycle later, for fewer bytes, and nothing rises on the way back from switch
// 7 to 15.
func TestUseCase(t *testing.T) {
	bytes := map[string]int{}
	for _, how := range []string{allDetailed, withAttention, passive} {
		run, err := useCase(how, 1)
		if err != nil {
			t.Fatal(err)
		}
		for cycle := range useCaseCycles {
			bytes[how] += run.bytes[cycle]
			r := &run.readings[cycle]
			if back := r[2]; back.tx < 0 || back.tx > 2e6 || back.sr > 0.2e6 {
				t.Errorf("%s, cycle %d: %+v from 7 to 15", how, cycle, back)
			}
			for place, v := range r[:2] {
				before := 1.0e6 // bytes a second of others
				rose := cycle >= useCaseMoved
				if rose {
					before += useCaseFlow
				}
				if v.tx < before-1.0e6 || v.tx > before+0.6e6 {
					t.Errorf("%s, cycle %d, place %d: %.0f B/s", how, cycle, place, v.tx)
				}
				if how == withAttention && cycle != useCaseMoved+1 && v.sr < 0 {
					continue // its probe had no reason to look closer
				}
				// Bytes of the flow since the move, up to a reading in this cycle, with up to 5 % of labels and
				// telemetry.
				least, most := 0.0, 0.1e6
				if rose {
					least, most = useCaseFlow*(float64(cycle-useCaseMoved)+.3), 1.05*useCaseFlow*(float64(cycle-useCaseMoved)+1.1)
				}
				if v.sr < 0 || v.sr < least || v.sr > most || v.ipv4 < v.sr || v.ipv4 > most+1.5e6*float64(cycle+1) {
					t.Errorf("%s, cycle %d, place %d: %+v, want %.0f to %.0f bytes of segment routing", how, cycle, place, v, least, most)
				}
			}
		}
	}
	if bytes[withAttention] > 6*bytes[allDetailed]/10 {
		t.Errorf("FANT takes %d bytes, all in detail %d", bytes[withAttention], bytes[allDetailed])
	}
	if bytes[passive] < bytes[allDetailed] {
		t.Errorf("passive INT takes %d bytes, probes %d", bytes[passive], bytes[allDetailed])
	}
}
