// Takes the place of OpenLDAP's client library in images. libpq calls it for one thing, the look-up of connection settings
// in LDAP that a line "ldap://…" of a service file asks for, and it brings 7 MB of libraries. Here that look-up fails:
// libpq then reports that it could not create an LDAP structure. docs/adr/0027-no-ldap-in-images.md.
//
// The functions are those that libpq 15 refers to, with the signatures of ldap.h. It goes no further than ldap_init().
extern "C" {

struct ldap;
struct ldapmsg;
struct berval;
struct timeval;

ldap* ldap_init(const char* /*host*/, int /*port*/) {
  return nullptr;
}
int ldap_set_option(ldap* /*connection*/, int /*option*/, const void* /*value*/) {
  return -1;
}
int ldap_simple_bind(ldap* /*connection*/, const char* /*name*/, const char* /*password*/) {
  return -1;
}
int ldap_search_st(ldap* /*connection*/, char* /*base*/, int /*scope*/, char* /*filter*/,
                   char** /*attributes*/, int /*attributes_only*/, timeval* /*limit*/,
                   ldapmsg** /*result*/) {
  return -1;
}
int ldap_result(ldap* /*connection*/, int /*id*/, int /*all*/, timeval* /*limit*/,
                ldapmsg** /*result*/) {
  return -1;
}
int ldap_count_entries(ldap* /*connection*/, ldapmsg* /*result*/) {
  return -1;
}
ldapmsg* ldap_first_entry(ldap* /*connection*/, ldapmsg* /*result*/) {
  return nullptr;
}
berval** ldap_get_values_len(ldap* /*connection*/, ldapmsg* /*entry*/, const char* /*attribute*/) {
  return nullptr;
}
void ldap_value_free_len(berval** /*values*/) {}
int ldap_msgfree(ldapmsg* /*message*/) {
  return 0;
}
int ldap_unbind(ldap* /*connection*/) {
  return 0;
}
char* ldap_err2string(int /*error*/) {
  static char text[] = "this image has no LDAP";
  return text;
}

}  // extern "C"
