package rate

import "github.com/hopscope/hopscope/inference/window"

// pipelineWindow returns one collector's partial window of cfg.Reports reports, with each of its flows and hops.
func pipelineWindow(cfg PipelineConfig) (*window.Partial, error) {
	p, err := newPipelineRun(cfg)
	if err != nil {
		return nil, err
	}
	for done := 0; done < cfg.Reports; {
		n := min(cfg.Batch, cfg.Reports-done)
		if err := p.batch(n, int64(done)); err != nil {
			return nil, err
		}
		done += n
	}
	p.window(int64(cfg.Reports))
	return &p.partial, nil
}
