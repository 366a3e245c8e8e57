package servecmd

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/backup"
	"github.com/tandem-tune/tandem/store/bucket"
)

// bucketOptions say which bucket keeps artifacts, if one does.
type bucketOptions struct{ address, endpoint string }

func bucketFlags(command *cobra.Command, options *bucketOptions) {
	command.Flags().StringVar(&options.address, "artifacts", "", "keep checkpoints and files of trials in this bucket instead of the data folder: s3://BUCKET/PREFIX (keys as AWS's programs find them)")
	command.Flags().StringVar(&options.endpoint, "artifacts-endpoint", os.Getenv("AWS_ENDPOINT_URL_S3"), "with --artifacts: URL of a service other than Amazon's that speaks S3 (or AWS_ENDPOINT_URL_S3)")
}

// place is where artifacts are kept: what was opened, or the bucket. What the former has
// goes to the bucket first.
func (o Options) place(ctx context.Context, kept artifacts) (artifacts, error) {
	folder := filepath.Join(o.Data, backup.Artifacts)
	before, err := artifact.Elsewhere(folder)
	if err != nil {
		return nil, err
	}
	if before != o.bucket.address && before != "" {
		return nil, term.Misuse("the artifacts of %s are in %s: start with --artifacts %[2]s. To move them, copy the objects and write the new address into %[3]s/moved-to", o.Data, before, folder)
	}
	if o.bucket.address == "" {
		return kept, nil
	}
	store, err := bucket.Open(ctx, bucket.Options{Address: o.bucket.address, Endpoint: o.bucket.endpoint, Folder: filepath.Join(o.Data, "uploads")})
	if err != nil {
		return nil, err
	}
	moved, err := store.Take(ctx, kept)
	if err == nil && before == "" {
		err = artifact.Move(folder, o.bucket.address)
	}
	o.Logger.Info("artifacts are kept in a bucket", "bucket", o.bucket.address, "moved", moved)
	if why := store.Unlinked(); why != nil {
		o.Logger.Warn("uploads pass through this server", "why", why)
	}
	return store, err
}
