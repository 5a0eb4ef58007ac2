package web

import (
	_ "embed"
	"net/http"

	"github.com/hopscope/hopscope/sink/web/access"
)

// openAPI describes the API as OpenAPI 3.1. It is written from [endpoints] and the types of the answers, with the
// comments of their fields: go test ./sink/web -run TestOpenAPI -update.
//
//go:embed openapi.json
var openAPI []byte

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	access.WriteJSON(w, http.StatusOK, openAPI, "no-cache")
}
