#include "event-reporter/event/git_files.hpp"

#include <gtest/gtest.h>

namespace gitops::reporter {
namespace {

constexpr const char* kAnswer = R"({"files":[
  {"path":"shop/web.yaml","text":"kind: Deployment\n","objects":[
    {"group":"apps","kind":"Deployment","namespace":"","name":"web"},
    {"group":"","kind":"Service","namespace":"prod","name":"web"}]},
  {"path":"shop/secret.yaml","objects":[{"group":"","kind":"Secret","namespace":"","name":"s"}]},
  {"path":"shop/one.yaml","text":"x","objects":[{"group":"","kind":"ConfigMap","namespace":"","name":"two"}]},
  {"path":"shop/two.yaml","text":"y","objects":[{"group":"","kind":"ConfigMap","namespace":"","name":"two"}]}]})";

AppView app(const std::string& source, const std::string& revision, const std::string& more = "") {
  return AppView::parse(R"({"metadata":{"name":"shop","namespace":"argocd"},"status":{"sync":{
    "revision":")" + revision +
                        R"(","comparedTo":{"source":)" + source + more + "}}}}")
      .value();
}
const std::string kCommit(40, 'a');

TEST(GitFiles, FindsTheFileOfAnObject) {
  const auto files = GitFiles::parse(kAnswer);
  ASSERT_TRUE(files);
  const auto* deployment = files->find(
      {.group = "apps", .version = "v1", .kind = "Deployment", .ns = "prod", .name = "web"});
  ASSERT_NE(deployment, nullptr) << "the file leaves the namespace to the application";
  EXPECT_EQ(deployment->path, "shop/web.yaml");
  EXPECT_EQ(deployment->text, "kind: Deployment\n");
  const ResourceId service{
      .group = "", .version = "v1", .kind = "Service", .ns = "prod", .name = "web"};
  EXPECT_EQ(files->find(service), deployment);
  auto elsewhere = service;
  elsewhere.ns = "test";
  EXPECT_EQ(files->find(elsewhere), nullptr);
  const ResourceId secret{
      .group = "", .version = "v1", .kind = "Secret", .ns = "prod", .name = "s"};
  ASSERT_NE(files->find(secret), nullptr);
  EXPECT_EQ(files->find(secret)->text, "");
  const ResourceId two{
      .group = "", .version = "v1", .kind = "ConfigMap", .ns = "prod", .name = "two"};
  EXPECT_EQ(files->find(two), nullptr) << "two files have it";
}

TEST(GitFiles, RefusesWhatIsNoAnswer) {
  for (const char* text : {"", "[]", "{}", R"({"files":{}})", "null"}) {
    EXPECT_FALSE(GitFiles::parse(text)) << text;
  }
  EXPECT_TRUE(GitFiles::parse(R"({"files":[]})"));
  EXPECT_TRUE(
      GitFiles::parse(R"({"files":[1,{"path":1,"objects":2},{"path":"a","objects":[3]}]})"));
}

TEST(GitFiles, AsksForPlainFoldersOnly) {
  const std::string plain = R"({"repoURL":"https://h/a/b.git","path":"x","targetRevision":"main"})";
  EXPECT_EQ(
      source_files_request(app(plain, kCommit)),
      R"({"repoURL":"https://h/a/b.git","revision":")" + kCommit +
          R"(","targetRevision":"main","path":"x","recurse":false,"include":"","exclude":""})");
  EXPECT_TRUE(source_files_request(
      app(R"({"repoURL":"https://h/a/b.git","path":"x","directory":{"recurse":true,"jsonnet":{}}})",
          kCommit)));
  EXPECT_FALSE(source_files_request(app(plain, "1.2.3")));
  EXPECT_FALSE(source_files_request(app(plain, "")));
  EXPECT_FALSE(source_files_request(app("{}", kCommit)));
  for (const char* member :
       {R"("chart":"c")", R"("helm":{})", R"("kustomize":{})", R"("plugin":{"name":"x"})",
        R"("directory":{"jsonnet":{"tlas":[]}})"}) {
    EXPECT_FALSE(source_files_request(
        app(std::string(R"({"repoURL":"https://h/a/b.git",)") + member + "}", kCommit)))
        << member;
  }
  EXPECT_FALSE(source_files_request(app("{}", kCommit, ",\"sources\":[" + plain + "]")));
  EXPECT_FALSE(source_files_request(AppView()));
}

}  // namespace
}  // namespace gitops::reporter
