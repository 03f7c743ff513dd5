// The Kubernetes provider of Pulumi, whose own main package needs files that its release generates.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

func main() {
	executable, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(filepath.Dir(executable), "schema", "schema.json"))
	if err != nil {
		log.Fatal(err)
	}
	provider.Serve("kubernetes", version.Version, schema, []byte("{}"))
}
