/* plan
name: overdue_invoices
title: Overdue invoices by customer
description: >
  Customers with overdue invoices: name, number of invoices, sum in euros and the oldest due date; the highest sum first.
input:
  type: object
  properties:
    least: { type: number, minimum: 0, default: 0, description: Smallest sum in euros that counts }
  additionalProperties: false
output:
  type: array
  items:
    type: object
    properties:
      accountId: { type: string }
      customer: { type: string }
      invoices: { type: integer }
      euros: { type: number }
      oldest: { type: string, description: Due date of the oldest invoice }
    required: [accountId, customer, invoices, euros, oldest]
*/
const { least = 0 } = codecallContext;

const byAccount = {};
let cursor;
do {
  const page = await callTool('billing:invoices_list', { status: 'overdue', limit: 100, cursor });
  for (const invoice of page.items) {
    (byAccount[invoice.accountId] ??= []).push(invoice);
  }
  cursor = page.nextCursor;
} while (cursor);

const rows = await __safe_parallel(
  Object.keys(byAccount).map((accountId) => async () => {
    const invoices = byAccount[accountId];
    const account = await callTool('crm:accounts_get', { id: accountId });
    return {
      accountId,
      customer: account.name,
      invoices: invoices.length,
      euros: invoices.reduce((sum, invoice) => sum + invoice.amountCents, 0) / 100,
      oldest: invoices.map((invoice) => invoice.dueAt).sort()[0],
    };
  }),
);
return rows.filter((row) => row.euros >= least).sort((a, b) => b.euros - a.euros);
