// Pulumi's Kubernetes provider. Its own main package embeds files that only its release generates.
package main

import (
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

const module = "github.com/pulumi/pulumi-kubernetes/provider/v4"

func main() {
	executable, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(filepath.Dir(executable), "schema", "schema.json"))
	if err != nil {
		log.Fatal(err)
	}
	// Only conversions of Terraform's programs need its mapping.
	provider.Serve("kubernetes", version(), schema, []byte("{}"))
}

// Returns the version of the module without its prefix.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		log.Fatal("the program has no build information")
	}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return strings.TrimPrefix(dependency.Version, "v")
		}
	}
	log.Fatalf("the program has no module %s", module)
	return ""
}
