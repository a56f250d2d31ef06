// Name: Split a Bill
// Description: Says what each guest pays

export const schema = {
  input: {
    total: { type: "number", required: true, min: 0, description: "The bill" },
    guests: { type: "integer", min: 1, default: 2, description: "How many share it" },
  },
  output: {
    each: { type: "number", required: true, description: "What each one pays" },
  },
}

const { MCPD_OPT_total, MCPD_OPT_guests } = process.env
console.log(JSON.stringify({ each: Number(MCPD_OPT_total) / Number(MCPD_OPT_guests) }))
