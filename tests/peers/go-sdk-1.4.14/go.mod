module peers/go-sdk-1.4.14

go 1.25.0

require github.com/codefresh-io/go-sdk v1.4.14
