package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// account is the user of the image, as in deploy/Dockerfile and the manifests of Kubernetes.
const account = 65532

// published are the ports of deploy/image/hopscope.yaml.
var published = []string{"32766/udp", "6343/udp", "4739/udp", "2055/udp", "8080/tcp"}

// writeImage writes the image of the container, for all processors of programs, as an archive of an OCI layout. It is made of the
// program alone, without a daemon, so that it has the same bytes wherever it is made; deploy/Dockerfile makes it with one.
func (r *release) writeImage(programs []*built) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range programs {
		if b.os != "linux" {
			continue
		}
		image, err := r.image(b)
		if err != nil {
			return err
		}
		platform := v1.Platform{OS: b.os, Architecture: b.arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	dir := filepath.Join(r.stage, "image")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.dist, "hopscope_"+r.version+"_image.tar"))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := archiveOf(out, dir, r.when); err != nil {
		return err
	}
	return out.Close()
}

// image is the image of one program.
func (r *release) image(b *built) (v1.Image, error) {
	files, err := r.imageFiles(b)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: r.when}
	config.History = []v1.History{{Created: v1.Time{Time: r.when}, CreatedBy: "make release"}}
	config.Config = v1.Config{
		User: "65532:65532", WorkingDir: "/var/lib/hopscope", Entrypoint: []string{"/usr/bin/hopscope"},
		Cmd: []string{"collect", "--config", "/etc/hopscope/hopscope.yaml"}, ExposedPorts: map[string]struct{}{},
		Labels: map[string]string{
			"org.opencontainers.image.title": "hopscope", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://" + module, "org.opencontainers.image.created": r.when.Format(time.RFC3339),
		},
	}
	for _, port := range published {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	return mutate.ConfigFile(image, config)
}

// imageFiles are the files of an image, as a tar.
func (r *release) imageFiles(b *built) ([]byte, error) {
	files := []file{
		{name: "etc/"}, {name: "etc/hopscope/"}, {name: "etc/hopscope/hopscope.yaml", from: "deploy/image/hopscope.yaml"},
		{name: "etc/ssl/"}, {name: "etc/ssl/certs/"}, {name: "etc/ssl/certs/ca-certificates.crt", text: authorities()},
		{name: "usr/"}, {name: "usr/bin/"}, {name: "usr/bin/hopscope", from: b.path, mode: 0o755},
		{name: "usr/share/"}, {name: "usr/share/doc/"}, {name: "usr/share/doc/hopscope/"},
		{name: "usr/share/doc/hopscope/LICENSE", from: "LICENSE"}, {name: "usr/share/doc/hopscope/THIRD-PARTY-LICENSES.txt", text: licenceTexts(b.parts)},
		{name: "var/"}, {name: "var/lib/"}, {name: "var/lib/hopscope/", mode: 0o750, owner: account}, // a new volume that is mounted here gets its owner
	}
	var out bytes.Buffer
	err := writeFiles(&out, "", files, r.when)
	return out.Bytes(), err
}

// authorities are those that Mozilla's browsers believe, for TLS with stores and receivers of alerts, as PEM. They are part of the
// sources, by go.sum, and not the machine's. Those that browsers believe with conditions are left out.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// archiveOf writes all files of a directory as a tar, in the order of their names.
func archiveOf(w io.Writer, dir string, when time.Time) error {
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if d.IsDir() {
			files = append(files, file{name: filepath.ToSlash(name) + "/"})
		} else {
			files = append(files, file{name: filepath.ToSlash(name), from: path})
		}
		return err
	})
	if err != nil {
		return err
	}
	return writeFiles(w, "", files, when)
}
