// The pages of the console and their addresses. A new page gets a row here.
import type { ComponentType } from 'preact';

import type { IconName } from '../ui/icons';
import { ApplicationPage } from '../pages/application/application';
import { ApplicationsPage } from '../pages/applications/applications';
import { RuntimePage, RuntimesPage } from '../pages/runtimes/runtimes';
import { lazy } from './lazy';

// Pages that are opened seldom have a chunk of their own.
const AuditPage = lazy(() => import('../pages/audit/audit').then((loaded) => loaded.AuditPage));
const AccessPage = lazy(() => import('../pages/access/access').then((loaded) => loaded.AccessPage));

export interface PageRow {
  pattern: string;
  title: (parameters: Record<string, string>) => string;
  page: ComponentType<{ parameters: Record<string, string> }>;
  menu?: { text: string; icon: IconName; key: string; onlyAdmin?: boolean };
}

export const PAGES: readonly PageRow[] = [
  { pattern: '/applications', title: () => 'Applications', page: ApplicationsPage,
    menu: { text: 'Applications', icon: 'applications', key: 'g a' } },
  { pattern: '/applications/:runtime/:namespace/:name', title: (at) => at.name!, page: ApplicationPage },
  { pattern: '/applications/:runtime/:namespace/:name/:tab', title: (at) => at.name!, page: ApplicationPage },
  { pattern: '/runtimes', title: () => 'Runtimes', page: RuntimesPage,
    menu: { text: 'Runtimes', icon: 'runtimes', key: 'g r' } },
  { pattern: '/runtimes/:runtime', title: (at) => at.runtime!, page: RuntimePage },
  { pattern: '/audit', title: () => 'Audit log', page: AuditPage,
    menu: { text: 'Audit log', icon: 'audit', key: 'g l', onlyAdmin: true } },
  { pattern: '/access', title: () => 'Access', page: AccessPage,
    menu: { text: 'Access', icon: 'access', key: 'g u' } },
  { pattern: '/access/:tab', title: (at) => `Access: ${at.tab!.replaceAll('-', ' ')}`, page: AccessPage },
];
