# Sources that cannot share a translation unit with others of their library, in the preset demo: names in their
# anonymous namespaces are also those of another source. A "redefinition" in ./dev demo alone: add the source here.
target_compile_options(gitops_compiler INTERFACE -Wno-shadow) # local names may be those of another source
function(gitops_compile_alone folder)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  set_source_files_properties(${ARGN} DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

gitops_compile_alone(libs/common/core asio_impl.cpp json_text.cpp worker_pool.cpp yaml_text.cpp)
gitops_compile_alone(libs/common/graphql leaf.cpp)
gitops_compile_alone(libs/common/net relay.cpp)
gitops_compile_alone(apps/app-proxy
  actions/rollouts.cpp actions/workflows.cpp promotions/promotion.cpp git/answer_check.cpp git/committer.cpp git/git_url.cpp git/manifest_edit.cpp git/pack_check.cpp
  http/git_login_routes.cpp http/log_routes.cpp http/source_files.cpp providers/bitbucket_server.cpp providers/github.cpp providers/gitlab.cpp promotions/promotions.cpp)
gitops_compile_alone(apps/control-plane
  projection/fold.cpp storage/copy_command.cpp storage/inventory_store.cpp storage/sqlite_event_store.cpp storage/stale_objects.cpp
  accounts/audit_routes.cpp accounts/password_routes.cpp accounts/team_routes.cpp runtimes/tunnel_bans.cpp sso/login_store.cpp live/change_feed.cpp live/change_store.cpp)
gitops_compile_alone(apps/event-reporter
  argo/gather.cpp report/reporter.cpp report/resource_reporter.cpp resource_mode.cpp shards/failover.cpp)
gitops_compile_alone(apps/request-router webhook_journal.cpp)
gitops_compile_alone(apps/tunnel-client config.cpp session.cpp)
gitops_compile_alone(apps/tunnel-server api.cpp authorizer.cpp host_table.cpp session.cpp)
gitops_compile_alone(tests/daemons router_harness.cpp)
gitops_compile_alone(tests/peers peer_cluster.cpp peer_events.cpp peer_programs.cpp)
