package influx

import "errors"

// CheckFiles reads the files that the settings name, and returns every problem with them.
func (c *Config) CheckFiles() error {
	var errs []error
	if c.TokenFile != "" {
		_, err := c.token()
		errs = append(errs, err)
	}
	_, err := c.TLS.Config()
	return errors.Join(append(errs, err)...)
}
