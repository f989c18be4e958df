// What went wrong at an identity provider, by the codes of sso/login_store.hpp.
const SENTENCES: Record<string, string> = {
  'sso-expired': 'That sign-in took too long, was used already, or began in another browser. Begin again.',
  'sso-denied': 'The identity provider did not let you in.',
  'sso-unavailable': 'The identity provider does not answer. Nothing is wrong with your account; try again later.',
  'sso-provider': 'The identity provider sent something that can not be used. An administrator has to look at its settings.',
  'sso-token': 'The identity provider sent a token that is not valid. An administrator finds the reason in the log.',
  'sso-unknown-user': 'You are known to the identity provider, but there is no user of yours here. Ask an administrator for an invitation.',
  'sso-disabled': 'Your user is disabled. Ask an administrator.',
  'sso-groups': 'You are in more groups than the identity provider can tell at once, so your rights are not known. Ask an administrator.',
  'sso-busy': 'Too many sign-ins at this moment. Try again in a minute.',
  'sso-failed': 'The control plane itself failed. Try again; an administrator finds the reason in the log.',
};

/** Returns a sentence for a code of the address; a code that is not known is not repeated, since anybody can make a link. */
export function signInError(code: string | undefined): string {
  if (!code) return '';
  return SENTENCES[code] ?? 'The sign-in did not succeed.';
}
